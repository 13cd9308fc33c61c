"""VPCs and what is in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.terraform.stub.aws.cloud import Cloud, Kind, Values, one, tagged, tags_read


class _Ec2:
    """An object with an id that `describe_<plural>` shows by that id."""

    kind = ""
    plural = ""
    ids = ""
    listing = ""
    name = ""
    has_arn = True

    def attributes(self, cloud: Cloud, item: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes that are looked at again."""
        return {}

    def make(self, cloud: Cloud, planned: Values) -> str:
        """Make one and return its id."""
        raise NotImplementedError

    def create(self, cloud: Cloud, planned: Values) -> dict[str, Any]:
        name = self.make(cloud, planned)
        found = self.read(cloud, {"id": name})
        assert found is not None, f"{self.kind} {name} was made and is not there"
        return {"id": name, **found}

    def read(self, cloud: Cloud, state: Values) -> dict[str, Any] | None:
        ask = getattr(cloud.ec2, f"describe_{self.plural}")
        item = one((cloud.found(lambda: ask(**{self.ids: [state["id"]]})) or {}).get(self.listing))
        if item is None or item.get("State") in ("deleted", "deleting"):
            return None
        arn = {"arn": cloud.arn(self.kind, state["id"])} if self.has_arn else {}
        return {**arn, **tags_read(item), **self.attributes(cloud, item)}

    def delete(self, cloud: Cloud, state: Values) -> None:
        getattr(cloud.ec2, f"delete_{self.kind.replace('-', '_')}")(**{self.name: state["id"]})


class Vpc(_Ec2):
    kind, plural, ids, listing, name = "vpc", "vpcs", "VpcIds", "Vpcs", "VpcId"

    def make(self, cloud: Cloud, planned: Values) -> str:
        made = cloud.ec2.create_vpc(CidrBlock=planned["cidr_block"], **tagged("vpc", planned))
        name = str(made["Vpc"]["VpcId"])
        for key, option in (
            ("enable_dns_support", "EnableDnsSupport"),
            ("enable_dns_hostnames", "EnableDnsHostnames"),
        ):
            if planned.get(key) is not None:
                cloud.ec2.modify_vpc_attribute(VpcId=name, **{option: {"Value": planned[key]}})
        return name

    def attributes(self, cloud: Cloud, item: Mapping[str, Any]) -> dict[str, Any]:
        name = item["VpcId"]

        def option(word: str) -> bool:
            found = cloud.ec2.describe_vpc_attribute(VpcId=name, Attribute=word)
            return bool(found[word[0].upper() + word[1:]]["Value"])

        return {
            "cidr_block": item["CidrBlock"],
            "default_security_group_id": default_group(cloud, name),
            "enable_dns_support": option("enableDnsSupport"),
            "enable_dns_hostnames": option("enableDnsHostnames"),
        }


def default_group(cloud: Cloud, vpc_id: str) -> str:
    """Return the group that a network has of itself."""
    filters = [
        {"Name": "vpc-id", "Values": [vpc_id]},
        {"Name": "group-name", "Values": ["default"]},
    ]
    found = cloud.ec2.describe_security_groups(Filters=filters)["SecurityGroups"]
    return str(found[0]["GroupId"])


class DefaultGroup:
    """The group that a network has of itself, with its rules taken away."""

    def create(self, cloud: Cloud, planned: Values) -> dict[str, Any]:
        name = default_group(cloud, planned["vpc_id"])
        group = cloud.ec2.describe_security_groups(GroupIds=[name])["SecurityGroups"][0]
        if group["IpPermissions"]:
            cloud.ec2.revoke_security_group_ingress(
                GroupId=name, IpPermissions=group["IpPermissions"]
            )
        if group["IpPermissionsEgress"]:
            cloud.ec2.revoke_security_group_egress(
                GroupId=name, IpPermissions=group["IpPermissionsEgress"]
            )
        return {"id": name, "arn": cloud.arn("security-group", name), "ingress": [], "egress": []}

    def read(self, cloud: Cloud, state: Values) -> dict[str, Any] | None:
        found = cloud.found(lambda: cloud.ec2.describe_security_groups(GroupIds=[state["id"]]))
        return {} if found and found["SecurityGroups"] else None

    def delete(self, cloud: Cloud, state: Values) -> None:
        """It goes with its network."""


class Gateway(_Ec2):
    kind, plural, ids = "internet-gateway", "internet_gateways", "InternetGatewayIds"
    listing, name = "InternetGateways", "InternetGatewayId"

    def make(self, cloud: Cloud, planned: Values) -> str:
        made = cloud.ec2.create_internet_gateway(**tagged(self.kind, planned))
        name = str(made["InternetGateway"]["InternetGatewayId"])
        cloud.ec2.attach_internet_gateway(InternetGatewayId=name, VpcId=planned["vpc_id"])
        return name

    def delete(self, cloud: Cloud, state: Values) -> None:
        cloud.ec2.detach_internet_gateway(InternetGatewayId=state["id"], VpcId=state["vpc_id"])
        super().delete(cloud, state)


class Subnet(_Ec2):
    kind, plural, ids, listing, name = "subnet", "subnets", "SubnetIds", "Subnets", "SubnetId"

    def make(self, cloud: Cloud, planned: Values) -> str:
        made = cloud.ec2.create_subnet(
            VpcId=planned["vpc_id"],
            CidrBlock=planned["cidr_block"],
            AvailabilityZone=planned["availability_zone"],
            **tagged("subnet", planned),
        )
        return str(made["Subnet"]["SubnetId"])

    def attributes(self, cloud: Cloud, item: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "vpc_id": item["VpcId"],
            "cidr_block": item["CidrBlock"],
            "availability_zone": item["AvailabilityZone"],
        }


class Address(_Ec2):
    plural, ids, listing = "addresses", "AllocationIds", "Addresses"
    kind = "elastic-ip"

    def make(self, cloud: Cloud, planned: Values) -> str:
        made = cloud.ec2.allocate_address(Domain="vpc", **tagged(self.kind, planned))
        return str(made["AllocationId"])

    def attributes(self, cloud: Cloud, item: Mapping[str, Any]) -> dict[str, Any]:
        return {"allocation_id": item["AllocationId"], "public_ip": item["PublicIp"]}

    def delete(self, cloud: Cloud, state: Values) -> None:
        cloud.ec2.release_address(AllocationId=state["id"])


class Nat(_Ec2):
    kind, plural, ids = "natgateway", "nat_gateways", "NatGatewayIds"
    listing, name, has_arn = "NatGateways", "NatGatewayId", False

    def make(self, cloud: Cloud, planned: Values) -> str:
        made = cloud.ec2.create_nat_gateway(
            SubnetId=planned["subnet_id"],
            AllocationId=planned["allocation_id"],
            **tagged(self.kind, planned),
        )
        return str(made["NatGateway"]["NatGatewayId"])

    def delete(self, cloud: Cloud, state: Values) -> None:
        cloud.ec2.delete_nat_gateway(NatGatewayId=state["id"])


class RouteTable(_Ec2):
    kind, plural, ids = "route-table", "route_tables", "RouteTableIds"
    listing, name = "RouteTables", "RouteTableId"

    def make(self, cloud: Cloud, planned: Values) -> str:
        made = cloud.ec2.create_route_table(VpcId=planned["vpc_id"], **tagged(self.kind, planned))
        return str(made["RouteTable"]["RouteTableId"])

    def attributes(self, cloud: Cloud, item: Mapping[str, Any]) -> dict[str, Any]:
        return {"vpc_id": item["VpcId"]}


class Route:
    """A line of a route table; it has no id of its own."""

    def create(self, cloud: Cloud, planned: Values) -> dict[str, Any]:
        table, target = planned["route_table_id"], planned["destination_cidr_block"]
        ways = {
            "GatewayId": planned.get("gateway_id"),
            "NatGatewayId": planned.get("nat_gateway_id"),
        }
        given = {key: value for key, value in ways.items() if isinstance(value, str)}
        cloud.ec2.create_route(RouteTableId=table, DestinationCidrBlock=target, **given)
        return {"id": f"r-{table}-{target}", "state": "active", "origin": "CreateRoute"}

    def read(self, cloud: Cloud, state: Values) -> dict[str, Any] | None:
        found = cloud.found(
            lambda: cloud.ec2.describe_route_tables(RouteTableIds=[state["route_table_id"]])
        )
        routes = found["RouteTables"][0]["Routes"] if found else []
        target = state["destination_cidr_block"]
        return {} if any(r.get("DestinationCidrBlock") == target for r in routes) else None

    def delete(self, cloud: Cloud, state: Values) -> None:
        cloud.ec2.delete_route(
            RouteTableId=state["route_table_id"],
            DestinationCidrBlock=state["destination_cidr_block"],
        )


class Association:
    """Which table a subnet has."""

    def create(self, cloud: Cloud, planned: Values) -> dict[str, Any]:
        made = cloud.ec2.associate_route_table(
            RouteTableId=planned["route_table_id"], SubnetId=planned["subnet_id"]
        )
        return {"id": made["AssociationId"]}

    def read(self, cloud: Cloud, state: Values) -> dict[str, Any] | None:
        filters = [{"Name": "association.subnet-id", "Values": [state["subnet_id"]]}]
        return {} if cloud.ec2.describe_route_tables(Filters=filters)["RouteTables"] else None

    def delete(self, cloud: Cloud, state: Values) -> None:
        cloud.ec2.disassociate_route_table(AssociationId=state["id"])


class Endpoint(_Ec2):
    kind, plural, ids, listing = "vpc-endpoint", "vpc_endpoints", "VpcEndpointIds", "VpcEndpoints"

    def make(self, cloud: Cloud, planned: Values) -> str:
        made = cloud.ec2.create_vpc_endpoint(
            VpcId=planned["vpc_id"],
            ServiceName=planned["service_name"],
            VpcEndpointType=planned["vpc_endpoint_type"],
            RouteTableIds=planned["route_table_ids"],
            **tagged(self.kind, planned),
        )
        return str(made["VpcEndpoint"]["VpcEndpointId"])

    def delete(self, cloud: Cloud, state: Values) -> None:
        cloud.ec2.delete_vpc_endpoints(VpcEndpointIds=[state["id"]])


class Group(_Ec2):
    kind, plural, ids = "security-group", "security_groups", "GroupIds"
    listing, name = "SecurityGroups", "GroupId"

    def make(self, cloud: Cloud, planned: Values) -> str:
        made = cloud.ec2.create_security_group(
            GroupName=planned["name"],
            Description=planned["description"],
            VpcId=planned["vpc_id"],
            **tagged(self.kind, planned),
        )
        # As the real provider: a new group lets nothing out.
        cloud.ec2.revoke_security_group_egress(
            GroupId=made["GroupId"],
            IpPermissions=[{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}],
        )
        return str(made["GroupId"])

    def attributes(self, cloud: Cloud, item: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "name": item["GroupName"],
            "description": item["Description"],
            "vpc_id": item["VpcId"],
        }


class Rule:
    """A rule of a group, in or out."""

    def __init__(self, way: str) -> None:
        self._way = way

    def create(self, cloud: Cloud, planned: Values) -> dict[str, Any]:
        authorize = getattr(cloud.ec2, f"authorize_security_group_{self._way}")
        made = authorize(
            GroupId=planned["security_group_id"],
            IpPermissions=_permission(planned),
            **tagged("security-group-rule", planned),
        )
        name = made["SecurityGroupRules"][0]["SecurityGroupRuleId"]
        return {
            "id": name,
            "security_group_rule_id": name,
            "arn": cloud.arn("security-group-rule", name),
        }

    def read(self, cloud: Cloud, state: Values) -> dict[str, Any] | None:
        filters = [{"Name": "group-id", "Values": [state["security_group_id"]]}]
        rules = cloud.ec2.describe_security_group_rules(Filters=filters)["SecurityGroupRules"]
        return {} if any(r["SecurityGroupRuleId"] == state["id"] for r in rules) else None

    def delete(self, cloud: Cloud, state: Values) -> None:
        revoke = getattr(cloud.ec2, f"revoke_security_group_{self._way}")
        revoke(GroupId=state["security_group_id"], IpPermissions=_permission(state))


def _permission(planned: Values) -> list[dict[str, Any]]:
    out: dict[str, Any] = {"IpProtocol": planned["ip_protocol"]}
    if planned.get("from_port") is not None:
        out |= {"FromPort": int(planned["from_port"]), "ToPort": int(planned["to_port"])}
    if planned.get("cidr_ipv4"):
        out["IpRanges"] = [{"CidrIp": planned["cidr_ipv4"]}]
    if planned.get("referenced_security_group_id"):
        out["UserIdGroupPairs"] = [{"GroupId": planned["referenced_security_group_id"]}]
    return [out]


KINDS: dict[str, Kind] = {
    "aws_default_security_group": DefaultGroup(),
    "aws_eip": Address(),
    "aws_internet_gateway": Gateway(),
    "aws_nat_gateway": Nat(),
    "aws_route": Route(),
    "aws_route_table": RouteTable(),
    "aws_route_table_association": Association(),
    "aws_security_group": Group(),
    "aws_subnet": Subnet(),
    "aws_vpc": Vpc(),
    "aws_vpc_endpoint": Endpoint(),
    "aws_vpc_security_group_egress_rule": Rule("egress"),
    "aws_vpc_security_group_ingress_rule": Rule("ingress"),
}
