# The bucket of checkpoints and data: versioned, closed to the public, no access lists of objects.
# It has no prevent_destroy, which no variable could lift; Google refuses to delete a bucket that
# holds something, and this module never empties one.

locals {
  bucket = var.create_bucket ? google_storage_bucket.this[0].name : var.bucket
}

resource "google_storage_bucket" "this" {
  #checkov:skip=CKV_GCP_62:A log of every access costs more than checkpoints are worth; audit logs have it where it is wanted.
  count                       = var.create_bucket ? 1 : 0
  project                     = var.project
  name                        = coalesce(var.bucket, "${var.project}-${var.name}-data")
  location                    = upper(var.region)
  storage_class               = "STANDARD"
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = false
  labels                      = local.labels

  versioning {
    enabled = true
  }

  lifecycle_rule {
    condition {
      days_since_noncurrent_time = 7
    }
    action {
      type = "Delete"
    }
  }

  lifecycle_rule {
    condition {
      age = 2
    }
    action {
      type = "AbortIncompleteMultipartUpload"
    }
  }

  dynamic "lifecycle_rule" {
    for_each = var.expire_checkpoints_after_days == null ? [] : [var.expire_checkpoints_after_days]
    content {
      condition {
        age            = lifecycle_rule.value
        matches_prefix = ["checkpoints/"]
      }
      action {
        type = "Delete"
      }
    }
  }

  dynamic "encryption" {
    for_each = var.kms_key == null ? [] : [var.kms_key]
    content {
      default_kms_key_name = encryption.value
    }
  }

  depends_on = [google_project_service.this]
}
