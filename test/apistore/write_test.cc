// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "apistore/bed.h"

namespace devmgr::apistore {
namespace {

class StoreWrite : public ::testing::Test {
 protected:
  Bed bed_;
};

// API-052, as far as the store decides it.
TEST_F(StoreWrite, ACreateMakesANameAndWhatTheSystemSets) {
  Json body = Bed::SliceBody("");
  body["metadata"] = {{"generateName", "00000-gpu.example.com-n1-"},
                      {"managedFields", Json::array()},
                      {"uid", "mine"}};
  const Json made = bed_.MustCreate(bed_.Slice(), body);
  const std::string name = MetaText(made, "name");
  EXPECT_EQ(name.substr(0, 25), "00000-gpu.example.com-n1-");
  EXPECT_EQ(name.size(), 30u);
  EXPECT_EQ(name.substr(25).find_first_not_of("bcdfghjklmnpqrstvwxz2456789"),
            std::string::npos);
  EXPECT_EQ(MetaText(made, "uid").size(), 36u);
  EXPECT_EQ(MetaText(made, "uid")[14], '4');
  EXPECT_EQ(MetaText(made, "creationTimestamp"), "2026-05-28T20:26:40Z");
  EXPECT_EQ(MetaText(made, "resourceVersion"), "2");
  EXPECT_EQ(made["metadata"]["generation"], 1);
  EXPECT_FALSE(made["metadata"].contains("managedFields"));
  EXPECT_EQ(made["kind"], "ResourceSlice");
  EXPECT_EQ(made["apiVersion"], "resource.k8s.io/v1");
  EXPECT_EQ(made["spec"], body["spec"]);
  EXPECT_EQ(bed_.Get(bed_.Slice(name)), made);
}

TEST_F(StoreWrite, ALongBaseOfANameIsCut) {
  Json body = Bed::SliceBody("");
  body["metadata"] = {{"generateName", std::string(80, 'a')}};
  const Json made = bed_.MustCreate(bed_.Slice(), body);
  EXPECT_EQ(MetaText(made, "name").size(), 63u);
}

TEST_F(StoreWrite, ACreateIsRefused) {
  bed_.MustCreate(bed_.Slice(), Bed::SliceBody("a"));
  const Answer twice = bed_.Create(bed_.Slice(), Bed::SliceBody("a"));
  EXPECT_EQ(twice.code, 409);
  EXPECT_EQ(twice.body["reason"], "AlreadyExists");
  EXPECT_EQ(twice.body["message"],
            "resourceslices.resource.k8s.io \"a\" already exists");
  EXPECT_EQ(bed_.Create(bed_.Slice(), Bed::SliceBody("")).code, 422);
  EXPECT_EQ(bed_.Create(bed_.Slice(), Bed::SliceBody("A_b")).code, 422);
  EXPECT_EQ(bed_.Create(bed_.Slice(), Json::array()).code, 400);
  Json wrong = Bed::SliceBody("b");
  wrong["kind"] = "Pod";
  EXPECT_EQ(bed_.Create(bed_.Slice(), wrong).code, 400);
  wrong = Bed::SliceBody("b");
  wrong["metadata"]["resourceVersion"] = "7";
  EXPECT_EQ(bed_.Create(bed_.Slice(), wrong).code, 400);
  wrong["metadata"] = {{"name", 7}};
  EXPECT_EQ(bed_.Create(bed_.Slice(), wrong).code, 400);
  EXPECT_EQ(bed_.Create(bed_.At("pods", "x"),
                        J(R"({"metadata":{"name":"p","namespace":"y"}})"))
                .code,
            400);
}

TEST_F(StoreWrite, OwnerReferencesAreChecked) {
  Json body = Bed::SliceBody("a");
  body["metadata"]["ownerReferences"] =
      J(R"([{"apiVersion":"v1","kind":"Node","name":"n1","uid":"",
             "controller":true},
            {"apiVersion":"v1","kind":"Node","name":"n2","uid":"u",
             "controller":true}])");
  const Answer answer = bed_.Create(bed_.Slice(), body);
  EXPECT_EQ(answer.code, 422);
  EXPECT_EQ(answer.body["details"]["causes"][0]["field"],
            "metadata.ownerReferences[0].uid");
  EXPECT_EQ(answer.body["details"]["causes"][1]["field"],
            "metadata.ownerReferences");
}

// API-058: an admission of the embedder names its fields; API-059 is one.
TEST(StoreAdmission, CausesOfTheEmbedderAreAnsweredAndNothingIsStored) {
  Store::Options options;
  options.admit = [](const ResourceType&, const Json& object, const Json*) {
    std::vector<Cause> causes;
    if (object["spec"]["devices"].size() > 1) {
      causes.push_back(
          {"FieldValueTooMany", "Too many: 2: at most 1", "spec.devices"});
    }
    return causes;
  };
  Bed bed(options);
  Json body = Bed::SliceBody("a");
  body["spec"]["devices"] = J(R"([{"name":"a"},{"name":"b"}])");
  const Answer answer = bed.Create(bed.Slice(), body);
  EXPECT_EQ(answer.code, 422);
  EXPECT_EQ(answer.body["message"],
            "ResourceSlice.resource.k8s.io \"a\" is invalid: spec.devices: Too "
            "many: 2: at most 1");
  EXPECT_EQ(answer.body["details"],
            J(R"({"name":"a","group":"resource.k8s.io","kind":"ResourceSlice",
                  "causes":[{"reason":"FieldValueTooMany",
                  "message":"Too many: 2: at most 1",
                  "field":"spec.devices"}]})"));
  EXPECT_EQ(bed.store->Get(bed.Slice("a"), "").code, 404);
}

// API-054
TEST_F(StoreWrite, APutWithAChangeRaisesVersionAndGeneration) {
  Json slice = bed_.MustCreate(bed_.Slice(), Bed::SliceBody("a"));
  slice["spec"]["devices"][0]["name"] = "gpu-1";
  const Answer answer = bed_.Put(bed_.Slice("a"), slice);
  EXPECT_EQ(answer.code, 200);
  EXPECT_EQ(answer.body["metadata"]["generation"], 2);
  EXPECT_EQ(MetaText(answer.body, "resourceVersion"), "3");
  EXPECT_EQ(MetaText(answer.body, "uid"), MetaText(slice, "uid"));
}

TEST_F(StoreWrite, AChangedLabelDoesNotRaiseTheGeneration) {
  Json slice = bed_.MustCreate(bed_.Slice(), Bed::SliceBody("a"));
  slice["metadata"]["labels"] = {{"a", "b"}};
  EXPECT_EQ(bed_.Put(bed_.Slice("a"), slice).body["metadata"]["generation"], 1);
}

// API-055
TEST_F(StoreWrite, APutWithAnOldVersionConflicts) {
  Json old = bed_.MustCreate(bed_.Slice(), Bed::SliceBody("a"));
  Json changed = old;
  changed["spec"]["devices"] = Json::array();
  const Json now = bed_.Put(bed_.Slice("a"), changed).body;
  const Answer answer = bed_.Put(bed_.Slice("a"), old);
  EXPECT_EQ(answer.code, 409);
  EXPECT_EQ(answer.body["reason"], "Conflict");
  EXPECT_EQ(bed_.Get(bed_.Slice("a")), now);
  // Without a version it is unconditional.
  old["metadata"].erase("resourceVersion");
  EXPECT_EQ(bed_.Put(bed_.Slice("a"), old).code, 200);
}

// API-056
TEST_F(StoreWrite, APutOfEqualContentChangesNothing) {
  const Json slice = bed_.MustCreate(bed_.Slice(), Bed::SliceBody("a"));
  const auto stream =
      bed_.Watch(bed_.Slice(), {"", "", "2", "", std::nullopt, false});
  const Answer answer = bed_.Put(bed_.Slice("a"), slice);
  EXPECT_EQ(answer.code, 200);
  EXPECT_EQ(answer.body, slice);
  EXPECT_EQ(bed_.store->revision(), 2u);
  EXPECT_TRUE(stream->empty());
}

TEST_F(StoreWrite, APutIsRefused) {
  Json slice = bed_.MustCreate(bed_.Slice(), Bed::SliceBody("a"));
  EXPECT_EQ(bed_.Put(bed_.Slice("b"), Bed::SliceBody("b")).code, 404);
  EXPECT_EQ(bed_.Put(bed_.Slice("a"), Bed::SliceBody("b")).code, 400);
  slice["metadata"]["uid"] = "u-x";
  const Answer answer = bed_.Put(bed_.Slice("a"), slice);
  EXPECT_EQ(answer.code, 409);
  EXPECT_NE(answer.body["message"].get<std::string>().find("u-x"),
            std::string::npos);
}

// API-058, its last part.
TEST_F(StoreWrite, DriverPoolAndNodeOfASliceStay) {
  Json slice = bed_.MustCreate(bed_.Slice(), Bed::SliceBody("a"));
  slice["spec"]["driver"] = "other.example.com";
  slice["spec"].erase("nodeName");
  const Answer answer = bed_.Put(bed_.Slice("a"), slice);
  EXPECT_EQ(answer.code, 422);
  EXPECT_EQ(answer.body["details"]["causes"][0]["field"], "spec.driver");
  EXPECT_EQ(answer.body["details"]["causes"][1]["field"], "spec.nodeName");
}

// API-060
TEST_F(StoreWrite, ATaintGetsATimeInWholeSeconds) {
  Json body = Bed::SliceBody("a");
  body["spec"]["devices"][0]["taints"] =
      J(R"([{"key":"k","effect":"NoSchedule"}])");
  const Json made = bed_.MustCreate(bed_.Slice(), body);
  EXPECT_EQ(made["spec"]["devices"][0]["taints"][0]["timeAdded"],
            "2026-05-28T20:26:40Z");
}

TEST_F(StoreWrite, StatusAndObjectAreWrittenApart) {
  Json pod =
      bed_.MustCreate(bed_.At("pods", "x"),
                      J(R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1"},
            "status":{"phase":"Running"}})"));
  EXPECT_FALSE(pod.contains("status"));
  Json body = pod;
  body["spec"]["hostNetwork"] = true;
  body["status"] = {{"phase", "Failed"}};
  const Target target = bed_.At("pods", "x", "p");
  EXPECT_FALSE(bed_.Put(target, body).body.contains("status"));
  body["metadata"].erase("resourceVersion");
  body["spec"] = Json::object();
  const Json stored = bed_.Put(target, body, /*status=*/true).body;
  EXPECT_EQ(stored["status"]["phase"], "Failed");
  EXPECT_EQ(stored["spec"]["nodeName"], "n1");
  EXPECT_EQ(stored["metadata"]["generation"], 2);
}

TEST_F(StoreWrite, ANodeIsCreatedWithItsStatus) {
  const Json node = bed_.MustCreate(
      bed_.At("nodes"),
      J(R"({"metadata":{"name":"n1"},"status":{"capacity":{"cpu":"4"}}})"));
  EXPECT_EQ(node["status"]["capacity"]["cpu"], "4");
}

TEST_F(StoreWrite, ADryRunIsAnsweredAndNotStored) {
  WriteOptions dry;
  dry.dry_run = true;
  EXPECT_EQ(bed_.store->Create(bed_.Slice(), Bed::SliceBody("a"), dry).code,
            201);
  EXPECT_EQ(bed_.store->Get(bed_.Slice("a"), "").code, 404);
  Json slice = bed_.MustCreate(bed_.Slice(), Bed::SliceBody("a"));
  slice["spec"]["devices"] = Json::array();
  EXPECT_EQ(bed_.store->Put(bed_.Slice("a"), slice, dry).code, 200);
  DeleteOptions dry_delete;
  dry_delete.dry_run = true;
  EXPECT_EQ(bed_.store->Delete(bed_.Slice("a"), dry_delete).code, 200);
  EXPECT_EQ(bed_.store->revision(), 2u);
}

TEST_F(StoreWrite, AnObjectThatIsTooLargeIsRefused) {
  Store::Options options;
  options.max_object_bytes = 1000;
  Bed bed(options);
  Json body = Bed::SliceBody("a");
  body["spec"]["text"] = std::string(1000, 'x');
  EXPECT_EQ(bed.Create(bed.Slice(), body).code, 413);
}

TEST_F(StoreWrite, WhatIsNotUtf8DoesNotThrow) {
  Json body = Bed::SliceBody("a");
  body["spec"]["text"] = "\xff\xfe";
  EXPECT_EQ(bed_.Create(bed_.Slice(), body).code, 201);
}

// API-057
TEST_F(StoreWrite, ADeleteChecksItsPreconditions) {
  const Json slice = bed_.MustCreate(bed_.Slice(), Bed::SliceBody("a"));
  DeleteOptions options;
  options.uid = "u-x";
  EXPECT_EQ(bed_.store->Delete(bed_.Slice("a"), options).code, 409);
  options.uid = MetaText(slice, "uid");
  options.resource_version = "1";
  EXPECT_EQ(bed_.store->Delete(bed_.Slice("a"), options).code, 409);
  options.resource_version = "2";
  const Answer gone = bed_.store->Delete(bed_.Slice("a"), options);
  EXPECT_EQ(gone.code, 200);
  EXPECT_EQ(gone.body["status"], "Success");
  EXPECT_EQ(gone.body["details"]["uid"], slice["metadata"]["uid"]);
  EXPECT_EQ(bed_.store->Delete(bed_.Slice("a"), options).code, 404);
}

TEST_F(StoreWrite, AFinalizerKeepsAnObjectUntilItIsRemoved) {
  Json body = Bed::SliceBody("a");
  body["metadata"]["finalizers"] = {"example.com/f"};
  bed_.MustCreate(bed_.Slice(), body);
  DeleteOptions options;
  options.now = kNow;
  const Answer marked = bed_.store->Delete(bed_.Slice("a"), options);
  EXPECT_EQ(MetaText(marked.body, "deletionTimestamp"), "2026-05-28T20:26:40Z");
  // A second delete changes nothing.
  EXPECT_EQ(bed_.store->Delete(bed_.Slice("a"), options).body, marked.body);
  const auto stream =
      bed_.Watch(bed_.Slice(), {"", "", "3", "", std::nullopt, false});
  Json last = marked.body;
  last["metadata"].erase("finalizers");
  EXPECT_EQ(bed_.Put(bed_.Slice("a"), last).code, 200);
  EXPECT_EQ(bed_.store->Get(bed_.Slice("a"), "").code, 404);
  EXPECT_EQ(Briefly(Events(*stream)), std::vector<std::string>{"DELETED a@4"});
}

TEST_F(StoreWrite, APodOnANodeIsDeletedInTwoSteps) {
  const Target target = bed_.At("pods", "x", "p");
  bed_.MustCreate(bed_.At("pods", "x"),
                  J(R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1"}})"));
  DeleteOptions options;
  options.now = kNow;
  const Json marked = bed_.store->Delete(target, options).body;
  EXPECT_EQ(marked["metadata"]["deletionGracePeriodSeconds"], 30);
  EXPECT_EQ(MetaText(marked, "deletionTimestamp"), "2026-05-28T20:27:10Z");
  // A status of a pod that is being deleted does not end it.
  Json status = marked;
  status["status"] = {{"phase", "Succeeded"}};
  EXPECT_EQ(bed_.Put(target, status, /*status=*/true).code, 200);
  options.grace_period_seconds = 0;
  EXPECT_EQ(bed_.store->Delete(target, options).code, 200);
  EXPECT_EQ(bed_.store->Get(target, "").code, 404);
}

TEST_F(StoreWrite, APodWithoutANodeIsGoneAtOnce) {
  bed_.MustCreate(bed_.At("pods", "x"), J(R"({"metadata":{"name":"p"}})"));
  EXPECT_EQ(bed_.store->Delete(bed_.At("pods", "x", "p"), {}).code, 200);
  EXPECT_EQ(bed_.store->Get(bed_.At("pods", "x", "p"), "").code, 404);
}

TEST_F(StoreWrite, ACollectionIsDeletedBySelector) {
  bed_.MustCreate(bed_.Slice(), Bed::SliceBody("a"));
  bed_.MustCreate(bed_.Slice(), Bed::SliceBody("b", "other.example.com"));
  bed_.MustCreate(bed_.Slice(), Bed::SliceBody("c"));
  ListOptions selection;
  selection.field_selector = "spec.nodeName=n1,spec.driver=gpu.example.com";
  const Answer gone = bed_.store->DeleteCollection(bed_.Slice(), selection, {});
  EXPECT_EQ(Names(gone.body), (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(Names(bed_.store->List(bed_.Slice(), {}).body),
            std::vector<std::string>{"b"});
  selection.field_selector = "spec.foo=1";
  EXPECT_EQ(bed_.store->DeleteCollection(bed_.Slice(), selection, {}).code,
            400);
}

TEST_F(StoreWrite, PatchesOfEachKindAreStored) {
  const Target target = bed_.At("nodes", "", "n1");
  const Json node =
      bed_.MustCreate(bed_.At("nodes"), J(R"({"metadata":{"name":"n1"},
                              "status":{"capacity":{"cpu":"4"}}})"));
  EXPECT_EQ(bed_.Patch(target, PatchKind::kMerge,
                       R"({"metadata":{"labels":{"a":"b"}},
                           "status":{"capacity":{"cpu":"5"}}})")
                .body["metadata"]["labels"]["a"],
            "b");
  EXPECT_EQ(bed_.Get(target)["status"]["capacity"]["cpu"], "4");
  EXPECT_EQ(bed_.Patch(target, PatchKind::kJson,
                       R"([{"op":"add","path":"/status/capacity/v.com~1gpu",
                            "value":"8"}])",
                       /*status=*/true)
                .body["status"]["capacity"]["v.com/gpu"],
            "8");
  const Answer answer = bed_.Patch(
      target, PatchKind::kStrategic,
      R"({"status":{"conditions":[{"type":"Ready"}]}})", /*status=*/true);
  EXPECT_EQ(answer.body["status"]["conditions"].size(), 1u);
  EXPECT_EQ(answer.body["status"]["capacity"].size(), 2u);
}

// API-027, the server's side of it.
TEST_F(StoreWrite, APatchWithAnotherUidConflicts) {
  bed_.MustCreate(bed_.At("nodes"), J(R"({"metadata":{"name":"n1"}})"));
  const Answer answer =
      bed_.Patch(bed_.At("nodes", "", "n1"), PatchKind::kStrategic,
                 R"({"metadata":{"uid":"u-n1"},"status":{"capacity":{}}})",
                 /*status=*/true);
  EXPECT_EQ(answer.code, 409);
}

TEST_F(StoreWrite, APatchIsRefused) {
  bed_.MustCreate(bed_.Slice(), Bed::SliceBody("a"));
  const Target target = bed_.Slice("a");
  EXPECT_EQ(bed_.Patch(bed_.Slice("b"), PatchKind::kMerge, "{}").code, 404);
  EXPECT_EQ(bed_.Patch(target, PatchKind::kMerge, "[]").code, 400);
  EXPECT_EQ(bed_.Patch(target, PatchKind::kJson, "{}").code, 400);
  EXPECT_EQ(bed_.Patch(target, PatchKind::kJson,
                       R"([{"op":"test","path":"/kind","value":"x"}])")
                .code,
            422);
  EXPECT_EQ(bed_.Patch(target, PatchKind::kStrategic, "{}").code, 415);
  EXPECT_EQ(bed_.Patch(target, PatchKind::kApply, "{}").code, 415);
  EXPECT_EQ(bed_.Patch(target, PatchKind::kMerge,
                       R"({"metadata":{"resourceVersion":"1"}})")
                .code,
            409);
}

TEST_F(StoreWrite, LoadTakesAnObjectAsItIs) {
  const Json pod =
      J(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","uid":"u-p"},
            "spec":{"nodeName":"n1"},"status":{"phase":"Running"}})");
  const Answer answer = bed_.store->Load(pod, kNow);
  EXPECT_EQ(answer.code, 201);
  const Json stored = bed_.Get(bed_.At("pods", "default", "p"));
  EXPECT_EQ(MetaText(stored, "uid"), "u-p");
  EXPECT_EQ(stored["status"]["phase"], "Running");
  EXPECT_EQ(bed_.store->Load(J(R"({"kind":"Pod"})"), kNow).code, 400);
  EXPECT_EQ(bed_.store->Load(Json::array(), kNow).code, 400);
}

TEST_F(StoreWrite, TheCounterGoesOnWhereAnotherEnded) {
  Store::Options options;
  options.first_revision = 500;
  Bed bed(options);
  EXPECT_EQ(MetaText(bed.MustCreate(bed.Slice(), Bed::SliceBody("a")),
                     "resourceVersion"),
            "501");
}

TEST_F(StoreWrite, UidsAndGeneratedNamesDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    Json body = Bed::SliceBody("");
    body["metadata"] = {{"generateName", "a-"}};
    const Json made = bed_.MustCreate(bed_.Slice(), body);
    EXPECT_TRUE(seen.insert(MetaText(made, "uid")).second);
    EXPECT_TRUE(seen.insert(MetaText(made, "name")).second);
  }
}

}  // namespace
}  // namespace devmgr::apistore
