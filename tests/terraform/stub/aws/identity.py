"""Roles, policies, launch templates, budgets, logs and the VPN: the rest of the account."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.terraform.stub.aws.cloud import ACCOUNT, Cloud, Kind, Values, listed, one, tags_read
from tests.terraform.stub.aws.network import _Ec2


def document(content: Any) -> str:
    """Return a policy as Terraform's `jsonencode` writes it, so that equal ones are equal text."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return "".join({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}.get(c, c) for c in text)


class Role:
    def create(self, cloud: Cloud, planned: Values) -> dict[str, Any]:
        made = cloud.iam.create_role(
            RoleName=planned["name"],
            AssumeRolePolicyDocument=planned["assume_role_policy"],
            Description=planned.get("description") or "",
            Tags=listed(planned),
        )["Role"]
        return {"id": planned["name"], "arn": made["Arn"], "unique_id": made["RoleId"]}

    def read(self, cloud: Cloud, state: Values) -> dict[str, Any] | None:
        found = cloud.found(lambda: cloud.iam.get_role(RoleName=state["id"]))
        if found is None:
            return None
        role = found["Role"]
        return {
            "name": role["RoleName"],
            "arn": role["Arn"],
            "description": role.get("Description") or None,
            "assume_role_policy": document(role["AssumeRolePolicyDocument"]),
            **tags_read(role),
        }

    def delete(self, cloud: Cloud, state: Values) -> None:
        cloud.iam.delete_role(RoleName=state["id"])


class RolePolicy:
    def create(self, cloud: Cloud, planned: Values) -> dict[str, Any]:
        cloud.iam.put_role_policy(
            RoleName=planned["role"], PolicyName=planned["name"], PolicyDocument=planned["policy"]
        )
        return {"id": f"{planned['role']}:{planned['name']}"}

    def read(self, cloud: Cloud, state: Values) -> dict[str, Any] | None:
        role, _, name = state["id"].partition(":")
        get = cloud.iam.get_role_policy
        return None if cloud.found(lambda: get(RoleName=role, PolicyName=name)) is None else {}

    def delete(self, cloud: Cloud, state: Values) -> None:
        cloud.iam.delete_role_policy(RoleName=state["role"], PolicyName=state["name"])


class Policy:
    def create(self, cloud: Cloud, planned: Values) -> dict[str, Any]:
        made = cloud.iam.create_policy(
            PolicyName=planned["name"],
            PolicyDocument=planned["policy"],
            Description=planned.get("description") or "",
            Tags=listed(planned),
        )["Policy"]
        return {"id": made["Arn"], "arn": made["Arn"], "policy_id": made["PolicyId"]}

    def read(self, cloud: Cloud, state: Values) -> dict[str, Any] | None:
        arn = state["id"]
        found = cloud.found(lambda: cloud.iam.get_policy(PolicyArn=arn))
        if found is None:
            return None
        policy = found["Policy"]
        version = cloud.iam.get_policy_version(PolicyArn=arn, VersionId=policy["DefaultVersionId"])[
            "PolicyVersion"
        ]
        return {
            "arn": arn,
            "name": policy["PolicyName"],
            "description": policy.get("Description") or None,
            "policy": document(version["Document"]),
            **tags_read(policy),
        }

    def delete(self, cloud: Cloud, state: Values) -> None:
        cloud.iam.delete_policy(PolicyArn=state["id"])


class Attachment:
    def create(self, cloud: Cloud, planned: Values) -> dict[str, Any]:
        cloud.iam.attach_role_policy(RoleName=planned["role"], PolicyArn=planned["policy_arn"])
        return {"id": f"{planned['role']}/{planned['policy_arn']}"}

    def read(self, cloud: Cloud, state: Values) -> dict[str, Any] | None:
        found = cloud.found(lambda: cloud.iam.list_attached_role_policies(RoleName=state["role"]))
        arns = [item["PolicyArn"] for item in (found or {}).get("AttachedPolicies", [])]
        return {} if state["policy_arn"] in arns else None

    def delete(self, cloud: Cloud, state: Values) -> None:
        cloud.iam.detach_role_policy(RoleName=state["role"], PolicyArn=state["policy_arn"])


class Profile:
    def create(self, cloud: Cloud, planned: Values) -> dict[str, Any]:
        name = planned["name"]
        made = cloud.iam.create_instance_profile(InstanceProfileName=name, Tags=listed(planned))
        cloud.iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=planned["role"])
        return {"id": name, "arn": made["InstanceProfile"]["Arn"]}

    def read(self, cloud: Cloud, state: Values) -> dict[str, Any] | None:
        get = cloud.iam.get_instance_profile
        found = cloud.found(lambda: get(InstanceProfileName=state["id"]))
        if found is None:
            return None
        role = one(found["InstanceProfile"]["Roles"])
        return {"role": role and role["RoleName"]}

    def delete(self, cloud: Cloud, state: Values) -> None:
        cloud.iam.remove_role_from_instance_profile(
            InstanceProfileName=state["id"], RoleName=state["role"]
        )
        cloud.iam.delete_instance_profile(InstanceProfileName=state["id"])


class LinkedRole:
    def create(self, cloud: Cloud, planned: Values) -> dict[str, Any]:
        made = cloud.iam.create_service_linked_role(AWSServiceName=planned["aws_service_name"])
        return {
            "id": made["Role"]["Arn"],
            "arn": made["Role"]["Arn"],
            "name": made["Role"]["RoleName"],
        }

    def read(self, cloud: Cloud, state: Values) -> dict[str, Any] | None:
        found = cloud.found(lambda: cloud.iam.get_role(RoleName=state["name"]))
        return None if found is None else {}

    def delete(self, cloud: Cloud, state: Values) -> None:
        cloud.iam.delete_service_linked_role(RoleName=state["name"])


def template_data(planned: Values) -> dict[str, Any]:
    """Return what is in a launch template as the API takes it."""
    metadata = planned["metadata_options"][0]
    volumes = [
        {
            "DeviceName": block["device_name"],
            "Ebs": {
                "VolumeSize": int(block["ebs"][0]["volume_size"]),
                "VolumeType": block["ebs"][0]["volume_type"],
                "Encrypted": block["ebs"][0]["encrypted"] == "true",
                "DeleteOnTermination": block["ebs"][0]["delete_on_termination"] == "true",
            },
        }
        for block in planned["block_device_mappings"]
    ]
    tags = [
        {
            "ResourceType": item["resource_type"],
            "Tags": [{"Key": k, "Value": v} for k, v in item["tags"].items()],
        }
        for item in planned["tag_specifications"]
    ]
    given = {"ImageId": planned.get("image_id"), "KeyName": planned.get("key_name")}
    return {
        "SecurityGroupIds": list(planned["vpc_security_group_ids"]),
        "IamInstanceProfile": {"Name": planned["iam_instance_profile"][0]["name"]},
        "InstanceInitiatedShutdownBehavior": planned["instance_initiated_shutdown_behavior"],
        "MetadataOptions": {
            "HttpTokens": metadata["http_tokens"],
            "HttpEndpoint": metadata["http_endpoint"],
            "HttpPutResponseHopLimit": int(metadata["http_put_response_hop_limit"]),
            "InstanceMetadataTags": metadata["instance_metadata_tags"],
        },
        "BlockDeviceMappings": volumes,
        "TagSpecifications": tags,
        **{key: value for key, value in given.items() if isinstance(value, str)},
    }


class Template(_Ec2):
    kind, plural, ids = "launch-template", "launch_templates", "LaunchTemplateIds"
    listing, name = "LaunchTemplates", "LaunchTemplateId"

    def make(self, cloud: Cloud, planned: Values) -> str:
        tags = listed(planned)
        specs = [{"ResourceType": self.kind, "Tags": tags}] if tags else []
        made = cloud.ec2.create_launch_template(
            LaunchTemplateName=planned["name"],
            LaunchTemplateData=template_data(planned),
            TagSpecifications=specs,
        )
        return str(made["LaunchTemplate"]["LaunchTemplateId"])

    def attributes(self, cloud: Cloud, item: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "name": item["LaunchTemplateName"],
            "latest_version": item["LatestVersionNumber"],
            "default_version": item["DefaultVersionNumber"],
        }


class Budget:
    def create(self, cloud: Cloud, planned: Values) -> dict[str, Any]:
        name = planned["name"]
        filters = {item["name"]: list(item["values"]) for item in planned["cost_filter"]}
        budget = {
            "BudgetName": name,
            "BudgetType": planned["budget_type"],
            "TimeUnit": planned["time_unit"],
            "BudgetLimit": {"Amount": planned["limit_amount"], "Unit": planned["limit_unit"]},
            "CostFilters": filters,
        }
        warnings = [
            {
                "Notification": {
                    "NotificationType": item["notification_type"],
                    "ComparisonOperator": item["comparison_operator"],
                    "Threshold": item["threshold"],
                    "ThresholdType": item["threshold_type"],
                },
                "Subscribers": [
                    {"SubscriptionType": "EMAIL", "Address": address}
                    for address in item["subscriber_email_addresses"]
                ],
            }
            for item in planned["notification"]
        ]
        cloud.budgets.create_budget(
            AccountId=ACCOUNT, Budget=budget, NotificationsWithSubscribers=warnings
        )
        return {"id": f"{ACCOUNT}:{name}", "arn": f"arn:aws:budgets::{ACCOUNT}:budget/{name}"}

    def read(self, cloud: Cloud, state: Values) -> dict[str, Any] | None:
        get = cloud.budgets.describe_budget
        found = cloud.found(lambda: get(AccountId=ACCOUNT, BudgetName=state["name"]))
        return None if found is None else {}

    def delete(self, cloud: Cloud, state: Values) -> None:
        cloud.budgets.delete_budget(AccountId=ACCOUNT, BudgetName=state["name"])


class LogGroup:
    def create(self, cloud: Cloud, planned: Values) -> dict[str, Any]:
        name = planned["name"]
        cloud.logs.create_log_group(logGroupName=name, tags=dict(planned.get("tags_all") or {}))
        cloud.logs.put_retention_policy(
            logGroupName=name, retentionInDays=int(planned["retention_in_days"])
        )
        return {"id": name, "arn": f"arn:aws:logs:{cloud.region}:{ACCOUNT}:log-group:{name}"}

    def read(self, cloud: Cloud, state: Values) -> dict[str, Any] | None:
        found = cloud.logs.describe_log_groups(logGroupNamePrefix=state["id"])["logGroups"]
        return {} if any(item["logGroupName"] == state["id"] for item in found) else None

    def delete(self, cloud: Cloud, state: Values) -> None:
        cloud.logs.delete_log_group(logGroupName=state["id"])


class FlowLog(_Ec2):
    kind, plural, ids, listing = "vpc-flow-log", "flow_logs", "FlowLogIds", "FlowLogs"

    def make(self, cloud: Cloud, planned: Values) -> str:
        made = cloud.ec2.create_flow_logs(
            ResourceType="VPC",
            ResourceIds=[planned["vpc_id"]],
            TrafficType=planned["traffic_type"],
            LogDestinationType=planned["log_destination_type"],
            LogGroupName=planned["log_destination"].partition(":log-group:")[2],
            DeliverLogsPermissionArn=planned["iam_role_arn"],
        )
        return str(made["FlowLogIds"][0])

    def attributes(self, cloud: Cloud, item: Mapping[str, Any]) -> dict[str, Any]:
        return {"tags": None, "tags_all": {}}

    def read(self, cloud: Cloud, state: Values) -> dict[str, Any] | None:
        # moto keeps no tags of flow logs.
        found = super().read(cloud, state)
        kept = ("tags", "tags_all")
        return found and {key: value for key, value in found.items() if key not in kept}

    def delete(self, cloud: Cloud, state: Values) -> None:
        cloud.ec2.delete_flow_logs(FlowLogIds=[state["id"]])


class CustomerGateway(_Ec2):
    kind, plural, ids = "customer-gateway", "customer_gateways", "CustomerGatewayIds"
    listing, name = "CustomerGateways", "CustomerGatewayId"

    def make(self, cloud: Cloud, planned: Values) -> str:
        made = cloud.ec2.create_customer_gateway(
            Type=planned["type"], IpAddress=planned["ip_address"], BgpAsn=int(planned["bgp_asn"])
        )
        name = str(made["CustomerGateway"]["CustomerGatewayId"])
        cloud.ec2.create_tags(Resources=[name], Tags=listed(planned))
        return name


class VpnGateway(_Ec2):
    kind, plural, ids = "vpn-gateway", "vpn_gateways", "VpnGatewayIds"
    listing, name = "VpnGateways", "VpnGatewayId"

    def make(self, cloud: Cloud, planned: Values) -> str:
        made = cloud.ec2.create_vpn_gateway(Type="ipsec.1")
        name = str(made["VpnGateway"]["VpnGatewayId"])
        cloud.ec2.create_tags(Resources=[name], Tags=listed(planned))
        cloud.ec2.attach_vpn_gateway(VpnGatewayId=name, VpcId=planned["vpc_id"])
        return name

    def delete(self, cloud: Cloud, state: Values) -> None:
        cloud.ec2.detach_vpn_gateway(VpnGatewayId=state["id"], VpcId=state["vpc_id"])
        super().delete(cloud, state)


class Vpn(_Ec2):
    kind, plural, ids = "vpn-connection", "vpn_connections", "VpnConnectionIds"
    listing, name = "VpnConnections", "VpnConnectionId"

    def make(self, cloud: Cloud, planned: Values) -> str:
        made = cloud.ec2.create_vpn_connection(
            Type=planned["type"],
            CustomerGatewayId=planned["customer_gateway_id"],
            VpnGatewayId=planned["vpn_gateway_id"],
            Options={"StaticRoutesOnly": bool(planned["static_routes_only"])},
        )
        name = str(made["VpnConnection"]["VpnConnectionId"])
        cloud.ec2.create_tags(Resources=[name], Tags=listed(planned))
        return name


KINDS: dict[str, Kind] = {
    "aws_budgets_budget": Budget(),
    "aws_cloudwatch_log_group": LogGroup(),
    "aws_customer_gateway": CustomerGateway(),
    "aws_flow_log": FlowLog(),
    "aws_iam_instance_profile": Profile(),
    "aws_iam_policy": Policy(),
    "aws_iam_role": Role(),
    "aws_iam_role_policy": RolePolicy(),
    "aws_iam_role_policy_attachment": Attachment(),
    "aws_iam_service_linked_role": LinkedRole(),
    "aws_launch_template": Template(),
    "aws_vpn_connection": Vpn(),
    "aws_vpn_gateway": VpnGateway(),
}
