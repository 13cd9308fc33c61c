# Baidu's provider has no launch template: image, disk, subnets and groups go to hybrid in the
# output `hybrid_provider`, and hybrid sends them with each launch. Only the key pair is an object.

resource "baiducloud_bcc_key_pair" "this" {
  count       = var.ssh_public_key == null ? 0 : 1
  name        = var.name
  description = "People who log in to nodes of ${var.name}"
  public_key  = var.ssh_public_key
}
