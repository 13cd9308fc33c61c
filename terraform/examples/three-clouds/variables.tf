variable "name" {
  description = "Name of the cluster, as `name:` in hybrid.yaml."
  type        = string
  default     = "three-clouds"
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

variable "gcp_project" {
  description = "Project of Google Cloud that pays."
  type        = string
}

variable "gcp_region" {
  description = "Region of Google Cloud."
  type        = string
  default     = "us-central1"
}

variable "gcp_image" {
  description = "Image of the nodes."
  type        = string
}

variable "gcp_launcher_members" {
  description = "Who hybrid runs as."
  type        = list(string)
}

variable "gcp_pools" {
  description = "What hybrid may rent there."
  type        = any
}

variable "baidu_region" {
  description = "Region of Baidu AI Cloud."
  type        = string
  default     = "bj"
}

variable "baidu_zones" {
  description = "Zones of it to make subnets in."
  type        = list(string)
  default     = ["cn-bj-d"]
}

variable "baidu_image" {
  description = "Image of the nodes."
  type        = string
}

variable "exchange" {
  description = "What a US dollar costs in CNY, with its day and source."
  type        = any
}

variable "baidu_pools" {
  description = "What hybrid may rent there."
  type        = any
}
