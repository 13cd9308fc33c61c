terraform {
  required_version = ">= 1.11, < 2.0"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "6.69.1"
    }
    google = {
      source  = "hashicorp/google"
      version = "8.7.0"
    }
    baiducloud = {
      source  = "baidubce/baiducloud"
      version = "1.23.5"
    }
  }
}
