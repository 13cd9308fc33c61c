output "address" {
  description = "The head's private address: Ray and hybrid's API for own machines and people in on_prem_cidrs. It stays when the machine is replaced."
  value       = aws_network_interface.this.private_ip
}

output "instance_id" {
  description = "The machine: `aws ssm start-session --target ID` opens a shell on it."
  value       = aws_instance.this.id
}

output "role_name" {
  description = "The head's role."
  value       = aws_iam_role.this.name
}

output "security_group_id" {
  description = "The head's security group."
  value       = aws_security_group.this.id
}

output "volume_id" {
  description = "The volume with the ledger, for backups."
  value       = aws_ebs_volume.state.id
}
