output "baidu" {
  description = "The account for hybrid."
  value       = module.baidu.hybrid_provider
}

output "launcher_user" {
  description = "The user that hybrid runs as: make an access key of it."
  value       = module.baidu.launcher_user
}
