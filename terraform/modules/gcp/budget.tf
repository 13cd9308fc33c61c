# An alarm, not a cap. It counts what carries the cluster's label: Google adds labels to its bills
# by itself, some hours late.

resource "google_billing_budget" "this" {
  count           = var.monthly_budget_usd == null ? 0 : 1
  billing_account = var.billing_account
  display_name    = "${var.name}-burst"

  budget_filter {
    projects        = ["projects/${var.project}"]
    labels          = { "hybrid-cluster" = var.name }
    calendar_period = "MONTH"
  }

  amount {
    specified_amount {
      currency_code = "USD"
      units         = tostring(var.monthly_budget_usd)
    }
  }

  dynamic "threshold_rules" {
    for_each = { "0.5" = "CURRENT_SPEND", "0.8" = "CURRENT_SPEND", "1" = "FORECASTED_SPEND" }
    content {
      threshold_percent = tonumber(threshold_rules.key)
      spend_basis       = threshold_rules.value
    }
  }

  dynamic "all_updates_rule" {
    for_each = length(var.budget_channels) == 0 ? [] : [var.budget_channels]
    content {
      monitoring_notification_channels = all_updates_rule.value
    }
  }

  depends_on = [google_project_service.this]
}
