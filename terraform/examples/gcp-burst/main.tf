provider "google" {
  project = var.gcp_project
  region  = var.gcp_region
}

module "gcp" {
  source = "../../modules/gcp" # in your repository: git::https://...//terraform/modules/gcp?ref=v0.1.0

  name             = var.name
  project          = var.gcp_project
  region           = var.gcp_region
  cidr_block       = "10.72.0.0/16"
  on_prem_cidrs    = var.on_prem_cidrs
  image            = var.gcp_image
  launcher_members = var.gcp_launcher_members
  pools            = var.gcp_pools
  tags             = var.tags
}
