output "gcp" {
  description = "The account for hybrid."
  value       = module.gcp.hybrid_provider
}

output "checkpoints" {
  description = "`jobs.checkpoints` of hybrid.yaml."
  value       = module.gcp.checkpoints
}
