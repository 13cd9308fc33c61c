output "aws" {
  description = "The account for hybrid."
  value       = module.aws.hybrid_provider
}

output "launcher_policy_arn" {
  description = "Attach it to the identity that hybrid runs as."
  value       = module.aws.launcher_policy_arn
}

output "checkpoints" {
  description = "`jobs.checkpoints` of hybrid.yaml."
  value       = module.aws.checkpoints
}
