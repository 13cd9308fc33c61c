# The bucket of checkpoints and data: encrypted, versioned, closed to the public, over TLS only.
# It has no prevent_destroy, which no variable could lift; AWS refuses to delete a bucket that
# holds something, and this module never empties one.

locals {
  bucket     = var.create_bucket ? aws_s3_bucket.this[0].bucket : var.bucket
  bucket_arn = var.create_bucket ? aws_s3_bucket.this[0].arn : "${local.arn}:s3:::${var.bucket}"
}

resource "aws_s3_bucket" "this" {
  #checkov:skip=CKV_AWS_18:A log of every access costs more than checkpoints are worth; CloudTrail has it where it is wanted.
  #checkov:skip=CKV_AWS_144:Checkpoints are read where they are written; a second region would double their cost.
  #checkov:skip=CKV2_AWS_62:Nothing waits for events of this bucket.
  count         = var.create_bucket ? 1 : 0
  bucket        = var.bucket
  bucket_prefix = var.bucket == null ? "${var.name}-" : null
  force_destroy = false
  tags          = local.tags
}

resource "aws_s3_bucket_public_access_block" "this" {
  count                   = var.create_bucket ? 1 : 0
  bucket                  = aws_s3_bucket.this[0].bucket
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_versioning" "this" {
  count  = var.create_bucket ? 1 : 0
  bucket = aws_s3_bucket.this[0].bucket
  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "this" {
  count  = var.create_bucket ? 1 : 0
  bucket = aws_s3_bucket.this[0].bucket
  rule {
    bucket_key_enabled = true
    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = var.kms_key_arn
    }
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "this" {
  count  = var.create_bucket ? 1 : 0
  bucket = aws_s3_bucket.this[0].bucket

  rule {
    id     = "old-versions"
    status = "Enabled"
    filter {
      prefix = ""
    }
    noncurrent_version_expiration {
      noncurrent_days = 7
    }
    abort_incomplete_multipart_upload {
      days_after_initiation = 2
    }
  }

  dynamic "rule" {
    for_each = var.expire_checkpoints_after_days == null ? [] : [var.expire_checkpoints_after_days]
    content {
      id     = "checkpoints"
      status = "Enabled"
      filter {
        prefix = "checkpoints/"
      }
      expiration {
        days = rule.value
      }
      abort_incomplete_multipart_upload {
        days_after_initiation = 2
      }
    }
  }

  depends_on = [aws_s3_bucket_versioning.this]
}

resource "aws_s3_bucket_policy" "this" {
  count  = var.create_bucket ? 1 : 0
  bucket = aws_s3_bucket.this[0].bucket
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "OnlyOverTls"
      Effect    = "Deny"
      Principal = "*"
      Action    = "s3:*"
      Resource  = [aws_s3_bucket.this[0].arn, "${aws_s3_bucket.this[0].arn}/*"]
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })

  depends_on = [aws_s3_bucket_public_access_block.this]
}
