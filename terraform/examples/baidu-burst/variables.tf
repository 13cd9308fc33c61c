variable "name" {
  description = "Name of the cluster, as `name:` in hybrid.yaml."
  type        = string
  default     = "baidu-burst"
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
