terraform {
  required_version = ">= 1.9, < 2.0" # validations that look at other variables came with 1.9

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.20, < 7.0"
    }
  }
}
