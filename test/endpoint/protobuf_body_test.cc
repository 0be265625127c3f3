// SPDX-License-Identifier: Apache-2.0
#include "endpoint/protobuf_body.h"

#include <gtest/gtest.h>

#include <string>

#include "apistore/bed.h"
#include "common/status.h"
#include "endpoint/wire_encoder.h"

namespace devmgr::endpoint {
namespace {

using apistore::J;
using apistore::Json;

constexpr const char* kV1 = "resource.k8s.io/v1";

Json Decoded(const std::string& body) {
  const absl::StatusOr<ProtobufBody> decoded = DecodeProtobufBody(body);
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  return decoded.ok() ? decoded->object : Json();
}

std::string ErrorOf(const std::string& body) {
  const absl::StatusOr<ProtobufBody> decoded = DecodeProtobufBody(body);
  EXPECT_FALSE(decoded.ok());
  return decoded.ok() ? "" : MessageOf(decoded.status());
}

std::string SliceOf(const std::string& spec) {
  return Enveloped(kV1, "ResourceSlice", Bytes(2, spec));
}

TEST(ProtobufBody, TakesTheNumbersOfTheWire) {
  const std::string attribute = Bytes(1, "model") + Bytes(2, Bytes(4, "a100"));
  const std::string count = Bytes(1, "count") + Bytes(2, Number(2, -3));
  const std::string capacity =
      Bytes(1, "memory") + Bytes(2, Bytes(1, Bytes(1, "80Gi")));
  const std::string taint = Bytes(1, "k") + Bytes(2, "") +
                            Bytes(3, "NoSchedule") +
                            Bytes(4, Number(1, 1780000000) + Number(2, 5));
  const std::string device = Bytes(1, "gpu-0") + Bytes(2, attribute) +
                             Bytes(2, count) + Bytes(3, capacity) +
                             Bytes(8, taint) + Number(12, 1);
  const std::string pool = Bytes(1, "p") + Number(2, 0) + Number(3, 1);
  const Json slice =
      Decoded(SliceOf(Bytes(1, "gpu.example.com") + Bytes(2, pool) +
                      Bytes(3, "n1") + Number(5, 0) + Bytes(6, device)));
  EXPECT_EQ(slice, J(R"({"apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "spec": {"driver": "gpu.example.com", "nodeName": "n1",
      "pool": {"name": "p", "generation": 0, "resourceSliceCount": 1},
      "devices": [{"name": "gpu-0", "allowMultipleAllocations": true,
        "attributes": {"model": {"string": "a100"}, "count": {"int": -3}},
        "capacity": {"memory": {"value": "80Gi"}},
        "taints": [{"key": "k", "effect": "NoSchedule",
                    "timeAdded": "2026-05-28T20:26:40Z"}]}]}})"));
}

TEST(ProtobufBody, LeavesOutWhatClientsSendForNothing) {
  // As the official client encodes metadata that has a name only.
  const std::string metadata = Bytes(1, "s") + Bytes(2, "") + Bytes(3, "") +
                               Bytes(4, "") + Bytes(5, "") + Bytes(6, "") +
                               Number(7, 0) + Bytes(8, "");
  const Json slice =
      Decoded(Enveloped(kV1, "ResourceSlice", Bytes(1, metadata)));
  EXPECT_EQ(slice["metadata"], J(R"({"name": "s"})"));
}

// API-053, first half.
TEST(ProtobufBody, ReadsDevicesOfV1beta1InTheirBasicPart) {
  const std::string basic = Bytes(1, Bytes(1, "a") + Bytes(2, Number(3, 1))) +
                            Bytes(4, "n1") +
                            Bytes(7, Bytes(1, "k") + Bytes(3, "NoExecute"));
  const std::string device = Bytes(1, "gpu-0") + Bytes(2, basic);
  const Json slice = Decoded(Enveloped(
      "resource.k8s.io/v1beta1", "ResourceSlice", Bytes(2, Bytes(6, device))));
  EXPECT_EQ(slice["spec"]["devices"], J(R"([{"name": "gpu-0", "basic": {
    "attributes": {"a": {"bool": true}}, "nodeName": "n1",
    "taints": [{"key": "k", "effect": "NoExecute"}]}}])"));
}

TEST(ProtobufBody, ReadsListsOfNumbersPackedAndNot) {
  const std::string packed = Bytes(6, Varint(1) + Varint(300));
  const std::string both = packed + Number(6, 7) + Number(7, 1);
  const Json slice = Decoded(SliceOf(
      Bytes(6, Bytes(1, "d") + Bytes(2, Bytes(1, "a") + Bytes(2, both)))));
  EXPECT_EQ(slice["spec"]["devices"][0]["attributes"]["a"],
            J(R"({"ints": [1, 300, 7], "bools": [true]})"));
}

TEST(ProtobufBody, TakesTheStatusOfAClaimAndIgnoresTheRest) {
  const std::string condition = Bytes(1, "Ready") + Bytes(2, "True") +
                                Number(3, 0) + Bytes(4, Number(1, 0)) +
                                Bytes(5, "Up") + Bytes(6, "");
  const std::string network = Bytes(1, "eth1") + Bytes(2, "10.0.0.1/24");
  const std::string entry =
      Bytes(1, "d") + Bytes(2, "p") + Bytes(3, "gpu-0") + Bytes(4, condition) +
      Bytes(5, Bytes(1, R"({"a": [1]})")) + Bytes(6, network);
  const std::string claim = Bytes(1, Bytes(1, "c")) + Bytes(2, "\xFF\xFF") +
                            Bytes(3, Bytes(1, "\xFF") + Bytes(4, entry));
  EXPECT_EQ(Decoded(Enveloped(kV1, "ResourceClaim", claim)),
            J(R"({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
      "metadata": {"name": "c"},
      "status": {"devices": [{"driver": "d", "pool": "p", "device": "gpu-0",
        "conditions": [{"type": "Ready", "status": "True", "reason": "Up",
          "message": "", "lastTransitionTime": "1970-01-01T00:00:00Z"}],
        "data": {"a": [1]},
        "networkData": {"interfaceName": "eth1", "ips": ["10.0.0.1/24"]}}]}})"));
}

TEST(ProtobufBody, ReadsDeleteOptionsOfAnyGroup) {
  const std::string options =
      Number(1, 0) + Bytes(2, Bytes(1, "u") + Bytes(2, "7")) + Bytes(5, "All");
  EXPECT_EQ(Decoded(Enveloped(kV1, "DeleteOptions", options)),
            J(R"({"apiVersion": "resource.k8s.io/v1", "kind": "DeleteOptions",
      "gracePeriodSeconds": 0, "dryRun": ["All"],
      "preconditions": {"uid": "u", "resourceVersion": "7"}})"));
  Decoded(Enveloped("v1", "DeleteOptions", ""));
}

TEST(ProtobufBody, ReadsEventsWithTimesToTheMicrosecond) {
  const Json event = Decoded(Enveloped(
      "events.k8s.io/v1", "Event",
      Bytes(2, Number(1, 1780000000) + Number(2, 1'234'567)) +
          Bytes(8, Bytes(1, "Pod") + Bytes(3, "p")) + Bytes(10, "text")));
  EXPECT_EQ(event["eventTime"], "2026-05-28T20:26:40.001234Z");
  EXPECT_EQ(event["regarding"]["kind"], "Pod");
  EXPECT_EQ(event["note"], "text");
}

TEST(ProtobufBody, SkipsAndCountsFieldsThatItDoesNotKnow) {
  const std::string group = Varint(99 << 3 | 3) + Number(1, 1) +
                            Varint(98 << 3 | 3) + Varint(98 << 3 | 4) +
                            Varint(99 << 3 | 4);
  const std::string body = SliceOf(Bytes(1, "d") + Bytes(77, "new") + group +
                                   Number(200, 5) + Varint(201 << 3 | 1) +
                                   "12345678" + Varint(202 << 3 | 5) + "1234");
  const absl::StatusOr<ProtobufBody> decoded = DecodeProtobufBody(body);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->unknown_fields, 5u);
  EXPECT_EQ(decoded->object["spec"], J(R"({"driver": "d"})"));
}

TEST(ProtobufBody, MergesAMessageThatComesTwice) {
  const Json slice = Decoded(Enveloped(
      kV1, "ResourceSlice",
      Bytes(2, Bytes(1, "d") + Bytes(3, "n1")) + Bytes(2, Bytes(1, "e"))));
  EXPECT_EQ(slice["spec"], J(R"({"driver": "e", "nodeName": "n1"})"));
}

// API-061
TEST(ProtobufBody, RefusesWhatIsNone) {
  EXPECT_EQ(ErrorOf("{}"),
            "the body does not begin with the four bytes of Kubernetes' "
            "protobuf");
  EXPECT_EQ(ErrorOf(std::string("k8s\0", 4)),
            "no kind '' of '' is read as "
            "protobuf");
  EXPECT_EQ(ErrorOf(Enveloped(kV1, "ResourceQuota", "")),
            "no kind 'ResourceQuota' of 'resource.k8s.io/v1' is read as "
            "protobuf");
  const std::string whole = SliceOf(Bytes(1, "gpu.example.com"));
  EXPECT_EQ(ErrorOf(whole.substr(0, whole.size() - 12)),
            "the message ends in the middle of a field");
  EXPECT_EQ(ErrorOf(SliceOf(Number(1, 5))),
            "spec: driver: field 1 has another type on the wire");
  EXPECT_EQ(ErrorOf(SliceOf(Bytes(1, "\xC3("))),
            "spec: driver: the text is not UTF-8");
  EXPECT_EQ(ErrorOf(SliceOf(Varint(7 << 3 | 6))),
            "spec: field 7 has the wire type 6");
  EXPECT_EQ(ErrorOf(SliceOf(
                Bytes(6, Bytes(8, Bytes(4, Number(1, -1) + Number(2, -1)))))),
            "spec: devices: taints: timeAdded: -1 seconds and "
            "18446744073709551615 nanoseconds are no time");
}

TEST(ProtobufBody, BoundsWhatAFewBytesBecome) {
  std::string bomb;
  for (std::size_t i = 0; i <= kMaxWireValues; ++i) bomb += Bytes(6, "");
  EXPECT_EQ(ErrorOf(SliceOf(bomb)),
            "spec: devices: the message has more than 200000 values");
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += Varint(50 << 3 | 3);
  EXPECT_EQ(ErrorOf(SliceOf(deep)),
            "spec: groups are nested more than 100 deep");
  EXPECT_NE(
      ErrorOf(Enveloped(
          kV1, "ResourceClaim",
          Bytes(3, Bytes(4, Bytes(5, Bytes(1, std::string(5000, '['))))))),
      "");
}

TEST(ProtobufBody, IsTheSameObjectThatJsonWouldBe) {
  const Json slice = J(R"({"apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"generateName": "00000-d-n1-", "labels": {"a": "b"},
      "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n1",
                           "uid": "u", "controller": true}]},
    "spec": {"driver": "d", "nodeName": "n1",
      "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
      "sharedCounters": [{"name": "s", "counters": {"c": {"value": "8"}}}],
      "devices": [{"name": "x", "consumesCounters": [
          {"counterSet": "s", "counters": {"c": {"value": "1"}}}],
        "capacity": {"m": {"value": "1Gi", "requestPolicy":
          {"default": "1", "validRange": {"min": "0", "step": "1"}}}},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
          {"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]},
        "bindingConditions": ["a"], "bindingFailureConditions": ["b"]}]}})");
  EXPECT_EQ(Decoded(ProtobufOf(slice)), slice);
}

}  // namespace
}  // namespace devmgr::endpoint
