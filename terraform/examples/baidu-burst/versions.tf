terraform {
  required_version = ">= 1.11, < 2.0"

  required_providers {
    baiducloud = {
      source  = "baidubce/baiducloud"
      version = "1.23.5"
    }
  }
}
