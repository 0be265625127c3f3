// SPDX-License-Identifier: Apache-2.0
#include <devmgr/manifests.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::string_view kPod =
    "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
    "spec: {containers: [{name: c}]}\n";

std::string OtherPod() {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: q}\n"
         "spec: {containers: [{name: c}]}\n";
}

DecodedManifest Decode(std::string_view text,
                       std::string_view file = "pod.yaml") {
  return DecodeManifest(text, file);
}

std::vector<std::string> Texts(const std::vector<ManifestProblem>& problems) {
  std::vector<std::string> texts;
  for (const ManifestProblem& problem : problems) {
    texts.push_back(problem.ToString());
  }
  return texts;
}

TEST(ManifestProblem, PrintsWhatIsKnown) {
  EXPECT_EQ((ManifestProblem{"pod.yaml", 12, "spec.containers[0].name", "bad"})
                .ToString(),
            "pod.yaml:12: spec.containers[0].name: bad");
  EXPECT_EQ((ManifestProblem{"pod.yaml", 0, "", "bad"}).ToString(),
            "pod.yaml: bad");
  EXPECT_EQ((ManifestProblem{"", 3, "spec", "bad"}).ToString(),
            "line 3: spec: bad");
  EXPECT_EQ((ManifestProblem{"", 0, "", "bad"}).ToString(), "bad");
}

TEST(DecodeManifest, ReadsSeveralDocumentsWithTheirLines) {
  const DecodedManifest manifest =
      Decode("---\n" + std::string(kPod) + "---\n# none\n---\n" + OtherPod());
  EXPECT_THAT(Texts(manifest.errors), IsEmpty());
  ASSERT_THAT(manifest.objects, SizeIs(2));
  EXPECT_EQ(manifest.objects[0].line, 2);
  EXPECT_EQ(manifest.objects[1].line, 9);
}

TEST(DecodeManifest, TakesTheFirstOfTwoThatAreTheSameObject) {
  const DecodedManifest manifest = Decode(
      std::string(kPod) + "---\n" + OtherPod() +
      "---\napiVersion: v1\nkind: Node\nmetadata: {name: p}\n"
      "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: other}\n"
      "spec: {containers: [{name: c}]}\n"
      "---\napiVersion: v1\nkind: Pod\nmetadata: {name: q}\n"
      "spec: {containers: []}\n"  // malformed, but a pod all the same
      "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: team}\n"
      "spec: {containers: [{name: c}]}\n");
  EXPECT_THAT(Texts(manifest.errors), IsEmpty());
  EXPECT_THAT(Texts(manifest.warnings),
              ElementsAre("pod.yaml:17: metadata.name: Pod 'default/p' is in "
                          "line 1 already; only the first counts",
                          "pod.yaml:22: metadata.name: Pod 'default/q' is in "
                          "line 6 already; only the first counts"));
  ASSERT_THAT(manifest.objects, SizeIs(4));
  EXPECT_EQ(std::get<Pod>(manifest.objects[0].object).metadata.uid, "");
  EXPECT_THAT(manifest.malformed_pods, IsEmpty());
}

TEST(DecodeManifest, FindsNothingInNothing) {
  for (const char* text : {"", "# only a comment\n", "---\n", "\n\n"}) {
    const DecodedManifest manifest = Decode(text);
    EXPECT_THAT(manifest.objects, IsEmpty());
    EXPECT_THAT(Texts(manifest.errors), IsEmpty());
  }
}

TEST(DecodeManifest, DocumentsThatAreNotUsedAreNamedWithKindAndLine) {
  const DecodedManifest manifest = Decode(
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: 1}\n"
      "---\napiVersion: v1\nkind: SecretList\nitems: [{metadata: 7}]\n"
      "---\napiVersion: resource.k8s.io/v1alpha3\nkind: "
      "ResourcePoolStatusRequest\n");
  EXPECT_THAT(manifest.objects, IsEmpty());
  EXPECT_THAT(Texts(manifest.errors), IsEmpty());
  EXPECT_THAT(
      Texts(manifest.warnings),
      ElementsAre(
          "pod.yaml:1: 'ConfigMap' 'c' of 'v1' is not used by this node; "
          "skipped",
          "pod.yaml:6: 'SecretList' of 'v1' is not used by this node; skipped",
          "pod.yaml:10: 'ResourcePoolStatusRequest' of "
          "'resource.k8s.io/v1alpha3' is not used by this node; skipped"));
}

TEST(DecodeManifest, ItemsOfAListThatAreNotUsedAreNamedOneByOne) {
  const DecodedManifest manifest = Decode(
      "apiVersion: v1\nkind: List\nitems:\n"
      "- {apiVersion: apps/v1, kind: Deployment, "
      "metadata: {namespace: a, name: web}}\n"
      "- {apiVersion: batch/v1, kind: Job}\n");
  EXPECT_THAT(
      Texts(manifest.warnings),
      ElementsAre("pod.yaml:4: items[0]: 'Deployment' 'a/web' of 'apps/v1' is "
                  "not used by this node; skipped",
                  "pod.yaml:5: items[1]: 'Job' of 'batch/v1' is not used by "
                  "this node; skipped"));
}

TEST(DecodeManifest, NamesTheObjectsOfAFileThatCannotBeUsed) {
  const DecodedManifest manifest = Decode(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: good}\n"
      "spec: {containers: [{name: c}]}\n"
      "---\n"
      "apiVersion: v1\nkind: Pod\nmetadata: {namespace: team, name: bad}\n"
      "spec: {priority: high, containers: [{name: c}]}\n"
      "---\n"
      "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\n"
      "metadata: {name: gpu}\nspec: {}\n");
  EXPECT_THAT(manifest.objects, IsEmpty());
  ASSERT_EQ(manifest.errors.size(), 1u);
  const std::string error = manifest.errors[0].ToString();
  EXPECT_THAT(error, testing::StartsWith("pod.yaml:9: spec.priority: "));
  EXPECT_THAT(manifest.unusable,
              ElementsAre(ObjectProblem{"Pod", {"default", "good"}, error},
                          ObjectProblem{"Pod", {"team", "bad"}, error},
                          ObjectProblem{"DeviceClass", {"", "gpu"}, error}));
  EXPECT_THAT(
      Decode("apiVersion: v1\nkind: Node\nmetadata: {name: n}\n").unusable,
      IsEmpty());
}

TEST(DecodeManifest, RequiresKindAndVersion) {
  EXPECT_THAT(Texts(Decode("metadata: {name: a}\n").errors),
              ElementsAre("pod.yaml:1: kind: is required",
                          "pod.yaml:1: apiVersion: is required"));
  EXPECT_THAT(Texts(Decode("kind: Pod\napiVersion: 1\n").errors),
              ElementsAre("pod.yaml:2: apiVersion: must be a string, is the "
                          "number 1 (put it in quotes)"));
  EXPECT_THAT(Texts(Decode("- 1\n").errors),
              ElementsAre("pod.yaml:1: must be a map, is a list"));
  EXPECT_THAT(Texts(Decode("word\n").errors),
              ElementsAre("pod.yaml:1: must be a map, is the string 'word'"));
}

TEST(DecodeManifest, ReadsListsOfAnyKind) {
  const DecodedManifest manifest = Decode(
      "apiVersion: v1\nkind: List\nitems:\n"
      "- {apiVersion: v1, kind: Node, metadata: {name: node}}\n"
      "- {apiVersion: v1, kind: Secret, metadata: {name: node}}\n"
      "- apiVersion: v1\n  kind: List\n  items:\n"
      "  - {apiVersion: v1, kind: Node, metadata: {name: m}}\n"
      "---\napiVersion: v1\nkind: List\nitems:\n");
  EXPECT_THAT(Texts(manifest.errors), IsEmpty());
  ASSERT_THAT(manifest.objects, SizeIs(2));
  EXPECT_EQ(std::get<Node>(manifest.objects[1].object).metadata.name, "m");
  EXPECT_EQ(manifest.objects[1].line, 9);
}

TEST(DecodeManifest, ReadsTypedLists) {
  const DecodedManifest manifest = Decode(
      "apiVersion: v1\nkind: PodList\nitems:\n"
      "- metadata: {name: a}\n  spec: {containers: [{name: c}]}\n"
      "- apiVersion: v1\n  kind: Pod\n  metadata: {name: b}\n"
      "  spec: {containers: [{name: c}]}\n"
      "---\napiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaimList\n"
      "items:\n- metadata: {name: c}\n"
      "  spec: {devices: {requests: [{name: r, deviceClassName: d}]}}\n");
  EXPECT_THAT(Texts(manifest.errors), IsEmpty());
  ASSERT_THAT(manifest.objects, SizeIs(3));
  EXPECT_EQ(std::get<Pod>(manifest.objects[1].object).metadata.name, "b");
  EXPECT_EQ(std::get<ResourceClaim>(manifest.objects[2].object)
                .spec.requests[0]
                .exactly->device_class_name,
            "d");
}

TEST(DecodeManifest, NamesItemsOfListsInPaths) {
  const DecodedManifest manifest = Decode(
      "apiVersion: v1\nkind: List\nitems:\n- null\n- 7\n"
      "- {apiVersion: v1, kind: Node, metadata: {name: 7}}\n- {kind: Pod}\n");
  EXPECT_THAT(
      Texts(manifest.errors),
      ElementsAre("pod.yaml:4: items[0]: must be a map, is null",
                  "pod.yaml:5: items[1]: must be a map, is the number 7",
                  "pod.yaml:6: items[2].metadata.name: must be a string, is "
                  "the number 7 (put it in quotes)",
                  "pod.yaml:7: items[3].apiVersion: is required"));
  EXPECT_THAT(Texts(Decode("apiVersion: v1\nkind: List\nitems: {}\n").errors),
              ElementsAre("pod.yaml:3: items: must be a list, is a map"));
  EXPECT_THAT(Texts(Decode("apiVersion: v2\nkind: List\n").errors), SizeIs(1));
}

TEST(DecodeManifest, PutsTheItemInThePathOfAMalformedPod) {
  const DecodedManifest manifest = Decode(
      "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: a}\n"
      "  spec:\n    containers:\n    - name: Bad\n"
      "    ephemeralContainers:\n"
      "    - resources: {claims: [{name: x}]}\n");
  EXPECT_THAT(Texts(manifest.errors), IsEmpty());
  ASSERT_THAT(manifest.malformed_pods, SizeIs(1));
  const ManifestProblem& problem = manifest.malformed_pods[0].problem;
  EXPECT_EQ(problem.field,
            "items[0].spec.ephemeralContainers[0].resources.claims");
  EXPECT_EQ(problem.line, 9);
  EXPECT_THAT(problem.message, HasSubstr("spec.containers[0].name: 'Bad'"));
}

TEST(DecodeManifest, RefusesOtherVersionsOfTheResourceGroup) {
  for (const char* version : {"v1alpha4", "v2"}) {
    for (const char* kind : {"ResourceClaim", "ResourceClass"}) {
      const DecodedManifest manifest =
          Decode(std::string("apiVersion: resource.k8s.io/") + version +
                 "\nkind: " + kind + "\nmetadata: {name: a}\n");
      ASSERT_THAT(manifest.errors, SizeIs(1));
      EXPECT_THAT(
          manifest.errors[0].ToString(),
          AllOf(HasSubstr("pod.yaml:1: apiVersion: "), HasSubstr(version),
                HasSubstr(kind), HasSubstr("v1, v1beta2, v1beta1, v1alpha3")));
    }
  }
}

TEST(DecodeManifest, RefusesKindsOfTheWrongGroup) {
  const struct {
    const char* kind;
    const char* version;
  } kCases[] = {{"Pod", "apps/v1"},
                {"Pod", "v2"},
                {"Node", "resource.k8s.io/v1"},
                {"ResourceClaim", "v1"},
                {"DeviceClass", "storage.k8s.io/v1"}};
  for (const auto& c : kCases) {
    const DecodedManifest manifest =
        Decode(std::string("kind: ") + c.kind + "\napiVersion: " + c.version +
               "\nmetadata: {name: a}\n");
    ASSERT_THAT(manifest.errors, SizeIs(1)) << c.kind << c.version;
    EXPECT_THAT(manifest.errors[0].ToString(),
                AllOf(HasSubstr("pod.yaml:2: apiVersion: kind "),
                      HasSubstr(c.kind), HasSubstr(c.version)));
  }
}

TEST(DecodeManifest, SkipsOtherProjectsKindsOfTheSameName) {
  const DecodedManifest manifest = Decode(
      "apiVersion: longhorn.io/v1beta2\nkind: Node\nmetadata: {name: node}\n");
  EXPECT_THAT(Texts(manifest.errors), IsEmpty());
  EXPECT_THAT(manifest.objects, IsEmpty());
  ASSERT_THAT(manifest.warnings, SizeIs(1));
  EXPECT_THAT(manifest.warnings[0].message, HasSubstr("longhorn.io/v1beta2"));
}

TEST(DecodeManifest, ReportsAllErrorsOfAFileByLine) {
  const DecodedManifest manifest = Decode(
      "apiVersion: v1\nkind: Pod\nmetadata:\n  name: 7\n  labels: {a: true}\n"
      "spec:\n  priority: high\n  containers:\n  - name: c\n    resources:\n"
      "      limits:\n        example.com/gpu: lots\n      claims: none\n"
      "---\napiVersion: v1\nkind: Node\nmetadata: {name: node}\n"
      "status: {capacity: [1]}\n---\n" +
      std::string(kPod));
  EXPECT_THAT(
      Texts(manifest.errors),
      ElementsAre(
          "pod.yaml:4: metadata.name: must be a string, is the number 7 (put "
          "it in quotes)",
          "pod.yaml:5: metadata.labels[a]: must be a string, is the boolean "
          "true (put it in quotes)",
          "pod.yaml:7: spec.priority: must be an integer, is the string 'high'",
          "pod.yaml:12: spec.containers[0].resources.limits[example.com/gpu]: "
          "'lots' is not a quantity (a number with an optional suffix such as "
          "m, k, M, G, Ki, Mi, Gi or e3)",
          "pod.yaml:13: spec.containers[0].resources.claims: must be a list, "
          "is the string 'none'",
          "pod.yaml:18: status.capacity: must be a map, is a list"));
  EXPECT_THAT(manifest.objects, IsEmpty()) << "none is usable";
}

TEST(DecodeManifest, HoldsBackMalformedPodsToo) {
  const DecodedManifest manifest = Decode(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: BAD}\n"
      "spec: {containers: [{name: c}]}\n---\nkind: Pod\n");
  EXPECT_THAT(manifest.errors, SizeIs(1));
  EXPECT_THAT(manifest.malformed_pods, IsEmpty());
}

TEST(DecodeManifest, ListsOnlyTheFirstHundredErrors) {
  std::string text = "apiVersion: v1\nkind: List\nitems:\n";
  for (int i = 0; i < 250; ++i) text += "- 7\n";
  const DecodedManifest manifest = Decode(text);
  ASSERT_THAT(manifest.errors, SizeIs(101));
  EXPECT_EQ(manifest.errors[100].message, "150 more problems");
}

TEST(DecodeManifest, KeepsMessagesShort) {
  const std::string huge(1 << 17, 'x');
  for (const std::string& text :
       {"kind: Pod\napiVersion: " + huge, "kind: [" + huge + "]",
        "kind: Pod\napiVersion: v1\nmetadata: {name: a, labels: {" + huge +
            ": 1}}\nspec: {}\n",
        R"({"kind": ")" + huge}) {
    const DecodedManifest manifest = Decode(text);
    ASSERT_THAT(manifest.errors, testing::Not(IsEmpty()));
    EXPECT_LT(manifest.errors[0].ToString().size(), 2500u);
  }
  const DecodedManifest pod = Decode(
      "kind: Pod\napiVersion: v1\nmetadata: {name: a}\nspec: {containers: "
      "[{name: c, resources: {limits: {? " +
      huge + " : 1}}}]}\n");
  ASSERT_THAT(pod.malformed_pods, SizeIs(1));
  EXPECT_LT(pod.malformed_pods[0].problem.ToString().size(), 3500u);
}

TEST(DecodeManifest, ReadsJsonFilesAsJsonOnly) {
  EXPECT_THAT(Decode("{\"apiVersion\": \"v1\", \"kind\": \"Node\", "
                     "\"metadata\": {\"name\": \"node\"}}",
                     "node.json")
                  .objects,
              SizeIs(1));
  const DecodedManifest bad = Decode("{\n \"apiVersion\": v1\n}", "node.json");
  ASSERT_THAT(bad.errors, SizeIs(1));
  EXPECT_THAT(bad.errors[0].ToString(), HasSubstr("node.json:2: not JSON"));
}

TEST(DecodeManifest, ReadsMetadataOfNamespacedAndClusterObjects) {
  const DecodedManifest manifest =
      Decode(std::string(kPod) +
             "---\napiVersion: v1\nkind: Node\nmetadata: {name: node, "
             "namespace: x}\n");
  ASSERT_THAT(manifest.objects, SizeIs(2));
  EXPECT_EQ(std::get<Pod>(manifest.objects[0].object).metadata.ns, "default");
  EXPECT_EQ(std::get<Node>(manifest.objects[1].object).metadata.ns, "");
}

TEST(DecodeManifest, ChecksIdentity) {
  const struct {
    const char* metadata;
    const char* problem;
  } kCases[] = {
      {"", "metadata: is required"},
      {"metadata: {}", "metadata.name: is required"},
      {"metadata: {name: null}", "metadata.name: is required"},
      {"metadata: {name: ''}", "metadata.name: is required"},
      {"metadata: {generateName: a-}", "metadata.name: is required"},
      {"metadata: {name: Bad_Name}", "metadata.name: 'Bad_Name' is not"},
      {"metadata: {name: node, uid: a/b}", "metadata.uid: 'a/b' is not"},
      {"metadata: {name: node, uid: ..}", "metadata.uid: '..' is not"},
      {"metadata: {name: node, uid: 7}", "metadata.uid: must be a string"},
      {"metadata: {name: node, creationTimestamp: today}",
       "metadata.creationTimestamp: 'today' is not a time"},
      {"metadata: {name: node, deletionTimestamp: '2026-13-01T00:00:00Z'}",
       "metadata.deletionTimestamp: '2026-13-01T00:00:00Z' is not a time"},
      {"metadata: {name: node, ownerReferences: [{kind: Pod, name: p}]}",
       "metadata.ownerReferences: an owner needs"},
      {"metadata: {name: node, ownerReferences: [{kind: P, name: p, uid: a, "
       "controller: true}, {kind: P, name: q, uid: b, controller: true}]}",
       "2 owners are the controller"},
      {"metadata: {name: node, annotations: {a: [1]}}",
       "metadata.annotations[a]: must be a string, is a list"},
  };
  for (const auto& c : kCases) {
    const DecodedManifest manifest =
        Decode(std::string("apiVersion: v1\nkind: Node\n") + c.metadata + "\n");
    ASSERT_THAT(manifest.errors, SizeIs(1)) << c.metadata;
    EXPECT_THAT(manifest.errors[0].ToString(), HasSubstr(c.problem));
  }
}

}  // namespace
}  // namespace devmgr
