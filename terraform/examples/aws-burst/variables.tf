variable "name" {
  description = "Name of the cluster, as `name:` in hybrid.yaml."
  type        = string
  default     = "aws-burst"
}

variable "on_prem_cidrs" {
  description = "Addresses of the own machines and of the head."
  type        = list(string)
}

variable "tags" {
  description = "Tags of everything, for bills."
  type        = map(string)
  default     = {}
}

variable "aws_region" {
  description = "Region of AWS."
  type        = string
  default     = "us-east-1"
}

variable "aws_zones" {
  description = "Zones of it to make subnets in."
  type        = list(string)
  default     = ["us-east-1a", "us-east-1b"]
}

variable "aws_image" {
  description = "AMI of the nodes, or ssm:/NAME/OF/PARAMETER."
  type        = string
}

variable "aws_pools" {
  description = "What hybrid may rent there."
  type        = any
}
