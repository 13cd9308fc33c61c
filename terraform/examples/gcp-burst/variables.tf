variable "name" {
  description = "Name of the cluster, as `name:` in hybrid.yaml."
  type        = string
  default     = "gcp-burst"
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
