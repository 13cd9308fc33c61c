terraform {
  required_version = ">= 1.9, < 2.0" # validations that look at other variables came with 1.9

  required_providers {
    baiducloud = {
      source  = "baidubce/baiducloud"
      version = ">= 1.22, < 2.0"
    }
  }
}
