# The bucket of checkpoints and data: encrypted, versioned, private. It has no prevent_destroy,
# which no variable could lift; this module never empties a bucket.

locals {
  bucket = var.create_bucket ? baiducloud_bos_bucket.this[0].bucket : var.bucket
}

resource "baiducloud_bos_bucket" "this" {
  count                       = var.create_bucket ? 1 : 0
  bucket                      = coalesce(var.bucket, "${var.name}-${var.region}-data")
  acl                         = "private"
  server_side_encryption_rule = "AES256"
  versioning_status           = "enabled"
  storage_class               = "STANDARD"
  force_destroy               = false
  resource_group              = var.resource_group
  tags                        = local.tags

  dynamic "lifecycle_rule" {
    for_each = var.expire_checkpoints_after_days == null ? [] : [var.expire_checkpoints_after_days]
    content {
      id       = "checkpoints"
      status   = "enabled"
      resource = ["${coalesce(var.bucket, "${var.name}-${var.region}-data")}/checkpoints/*"]
      condition {
        time {
          date_greater_than = "$(lastModified)+P${lifecycle_rule.value}D"
        }
      }
      action {
        name = "DeleteObject"
      }
    }
  }
}
