terraform {
  required_version = ">= 1.11, < 2.0" # 1.11 is the first with write-only arguments: the VPN's key stays out of the state

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 8.0, < 9.0"
    }
  }
}
