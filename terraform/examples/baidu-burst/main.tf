provider "baiducloud" {
  region = var.baidu_region # keys: BAIDUCLOUD_ACCESS_KEY and BAIDUCLOUD_SECRET_KEY
}

module "baidu" {
  source = "../../modules/baidu" # in your repository: git::https://...//terraform/modules/baidu?ref=v0.1.0

  name          = var.name
  region        = var.baidu_region
  zones         = var.baidu_zones
  cidr_block    = "10.80.0.0/16"
  on_prem_cidrs = var.on_prem_cidrs
  image         = var.baidu_image
  exchange      = var.exchange
  pools         = var.baidu_pools
  tags          = var.tags
}
