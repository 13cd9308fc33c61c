output "aws" {
  description = "The account for hybrid."
  value       = module.aws.hybrid_provider
}

output "aws_launcher_policy_arn" {
  description = "Attach it to the identity in AWS that hybrid runs as."
  value       = module.aws.launcher_policy_arn
}

output "checkpoints" {
  description = "`jobs.checkpoints` of hybrid.yaml."
  value       = module.aws.checkpoints
}

output "gcp" {
  description = "The account for hybrid."
  value       = module.gcp.hybrid_provider
}

output "baidu" {
  description = "The account for hybrid."
  value       = module.baidu.hybrid_provider
}

output "baidu_launcher_user" {
  description = "The user of Baidu that hybrid runs as: make an access key of it."
  value       = module.baidu.launcher_user
}
