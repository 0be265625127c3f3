// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <random>

#include "apistore/bed.h"
#include "support/test_scale.h"

namespace devmgr::apistore {
namespace {

using V = std::vector<std::string>;

WatchOptions From(const std::string& version) {
  WatchOptions options;
  options.resource_version = version;
  return options;
}

WatchOptions StreamedList() {
  WatchOptions options;
  options.send_initial_events = true;
  options.version_match = "NotOlderThan";
  options.bookmarks = true;
  return options;
}

class StoreWatch : public ::testing::Test {
 protected:
  void Change(const std::string& name, const std::string& device) {
    Json slice = bed_.Get(bed_.Slice(name));
    slice["spec"]["devices"][0]["name"] = device;
    EXPECT_EQ(bed_.Put(bed_.Slice(name), slice).code, 200);
  }
  int CodeOf(const WatchOptions& options) {
    const auto result = bed_.store->Watch(bed_.Slice(), options);
    const auto* answer = std::get_if<Answer>(&result);
    return answer == nullptr ? 200 : answer->code;
  }
  Bed bed_;
};

// API-043
TEST_F(StoreWatch, ChangesAfterAVersionComeInOrder) {
  bed_.MustCreate(bed_.Slice(), Bed::SliceBody("a"));
  const auto stream = bed_.Watch(bed_.Slice(), From("2"));
  EXPECT_TRUE(stream->empty());
  bed_.MustCreate(bed_.Slice(), Bed::SliceBody("b"));
  Change("b", "gpu-9");
  bed_.store->Delete(bed_.Slice("b"), {});
  const std::vector<Json> events = Events(*stream);
  EXPECT_EQ(Briefly(events), (V{"ADDED b@3", "MODIFIED b@4", "DELETED b@5"}));
  for (const Json& event : events) {
    EXPECT_EQ(event["object"]["kind"], "ResourceSlice");
    EXPECT_EQ(event["object"]["apiVersion"], "resource.k8s.io/v1");
  }
  EXPECT_EQ(events[2]["object"]["spec"]["devices"][0]["name"], "gpu-9");
}

TEST_F(StoreWatch, ChangesOfThePastComeFirst) {
  bed_.MustCreate(bed_.Slice(), Bed::SliceBody("a"));
  Change("a", "x");
  const auto stream = bed_.Watch(bed_.Slice(), From("2"));
  Change("a", "y");
  EXPECT_EQ(Briefly(Events(*stream)), (V{"MODIFIED a@3", "MODIFIED a@4"}));
}

TEST_F(StoreWatch, WithoutAVersionItBeginsWithWhatThereIs) {
  bed_.MustCreate(bed_.Slice(), Bed::SliceBody("a"));
  for (const char* version : {"", "0"}) {
    const auto stream = bed_.Watch(bed_.Slice(), From(version));
    EXPECT_EQ(Briefly(Events(*stream)), V{"ADDED a@2"});
  }
}

TEST_F(StoreWatch, OtherTypesAndNamespacesAreNotShown) {
  const auto slices = bed_.Watch(bed_.Slice(), {});
  const auto pods = bed_.Watch(bed_.At("pods", "x"), {});
  const auto one = bed_.Watch(bed_.At("pods", "y", "q"), {});
  for (const char* ns : {"x", "y"}) {
    bed_.MustCreate(bed_.At("pods", ns), J(R"({"metadata":{"name":"p"}})"));
  }
  EXPECT_TRUE(slices->empty());
  EXPECT_EQ(Briefly(Events(*pods)), V{"ADDED p@2"});
  EXPECT_TRUE(one->empty());
}

TEST_F(StoreWatch, AnObjectThatComesToMatchIsAddedAndOneThatLeavesIsDeleted) {
  WatchOptions options = From("1");
  options.label_selector = "a=1";
  const auto stream = bed_.Watch(bed_.At("nodes"), options);
  const Target node = bed_.At("nodes", "", "n");
  bed_.MustCreate(bed_.At("nodes"), J(R"({"metadata":{"name":"n"}})"));
  const auto label = [&](const char* value) {
    bed_.Patch(
        node, PatchKind::kMerge,
        std::string(R"({"metadata":{"labels":{"a":")") + value + R"("}}})");
  };
  label("1");
  label("2");
  const std::vector<Json> events = Events(*stream);
  EXPECT_EQ(Briefly(events), (V{"ADDED n@3", "DELETED n@4"}));
  EXPECT_EQ(events[1]["object"]["metadata"]["labels"]["a"], "1");
}

// API-038
TEST_F(StoreWatch, AStreamedListEndsWithABookmarkOfItsKind) {
  bed_.MustCreate(bed_.Slice(), Bed::SliceBody("a"));
  bed_.MustCreate(bed_.Slice(), Bed::SliceBody("b"));
  bed_.MustCreate(bed_.Slice(), Bed::SliceBody("c", "E"));
  WatchOptions options = StreamedList();
  options.field_selector = "spec.driver=gpu.example.com,spec.nodeName=n1";
  const auto stream = bed_.Watch(bed_.Slice(), options);
  const std::vector<Json> events = Events(*stream);
  EXPECT_EQ(Briefly(events), (V{"ADDED a@2", "ADDED b@3", "BOOKMARK @4"}));
  EXPECT_EQ(events[2]["object"]["kind"], "ResourceSlice");
  EXPECT_EQ(events[2]["object"]["apiVersion"], "resource.k8s.io/v1");
  EXPECT_EQ(events[2]["object"]["metadata"]["annotations"]
                  ["k8s.io/initial-events-end"],
            "true");
}

// API-039
TEST_F(StoreWatch, AStreamedListOfNothingIsABookmark) {
  const auto stream = bed_.Watch(bed_.Slice(), StreamedList());
  EXPECT_EQ(Briefly(Events(*stream)), V{"BOOKMARK @1"});
}

// API-041
TEST_F(StoreWatch, OptionsThatContradictEachOtherAreRefused) {
  WatchOptions options = StreamedList();
  options.version_match = "";
  EXPECT_EQ(CodeOf(options), 422);
  options.version_match = "Exact";
  EXPECT_EQ(CodeOf(options), 422);
  options.send_initial_events.reset();
  options.version_match = "NotOlderThan";
  EXPECT_EQ(CodeOf(options), 422);
  options = StreamedList();
  options.resource_version = "99";
  EXPECT_EQ(CodeOf(options), 504);
  EXPECT_EQ(CodeOf(From("x")), 400);
  options = {};
  options.field_selector = "spec.foo=1";
  EXPECT_EQ(CodeOf(options), 400);
}

TEST_F(StoreWatch, SendInitialEventsFalseBeginsWithChanges) {
  bed_.MustCreate(bed_.Slice(), Bed::SliceBody("a"));
  WatchOptions options = StreamedList();
  options.send_initial_events = false;
  const auto stream = bed_.Watch(bed_.Slice(), options);
  EXPECT_TRUE(stream->empty());
}

// API-045
TEST_F(StoreWatch, AVersionOlderThanTheHistoryIsExpired) {
  Store::Options small;
  small.history_changes = 3;
  Bed bed(small);
  for (const char* name : {"a", "b", "c", "d"}) {
    bed.MustCreate(bed.Slice(), Bed::SliceBody(name));
  }
  EXPECT_EQ(Briefly(Events(*bed.Watch(bed.Slice(), From("2")))),
            (V{"ADDED b@3", "ADDED c@4", "ADDED d@5"}));
  const auto result = bed.store->Watch(bed.Slice(), From("1"));
  const auto* answer = std::get_if<Answer>(&result);
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer->code, 410);
  EXPECT_EQ(answer->body["reason"], "Expired");
}

TEST_F(StoreWatch, TheHistoryIsBoundedByBytesToo) {
  Store::Options small;
  small.history_bytes = 1000;
  Bed bed(small);
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"}) {
    bed.MustCreate(bed.Slice(), Bed::SliceBody(name));
  }
  EXPECT_TRUE(
      std::holds_alternative<Answer>(bed.store->Watch(bed.Slice(), From("2"))));
  EXPECT_FALSE(
      std::holds_alternative<Answer>(bed.store->Watch(bed.Slice(), From("7"))));
}

TEST_F(StoreWatch, AWatchFromTheFutureShowsNothingBeforeIt) {
  const auto stream = bed_.Watch(bed_.Slice(), From("3"));
  for (const char* name : {"a", "b", "c"}) {
    bed_.MustCreate(bed_.Slice(), Bed::SliceBody(name));
  }
  EXPECT_EQ(Briefly(Events(*stream)), V{"ADDED c@4"});
}

// API-048
TEST_F(StoreWatch, AReaderThatStopsIsClosedAtItsBoundAndNoOther) {
  Store::Options options;
  options.watch.events = 10;
  Bed bed(options);
  const auto stalled = bed.Watch(bed.Slice(), {});
  const auto reader = bed.Watch(bed.Slice(), {});
  std::size_t read = 0;
  int ready = 0;
  stalled->OnReady([&] { ++ready; });
  for (int i = 0; i < 20; ++i) {
    Json body = Bed::SliceBody("");
    body["metadata"] = {{"generateName", "a-"}};
    bed.MustCreate(bed.Slice(), body);
    read += Events(*reader).size();
  }
  EXPECT_EQ(read, 20u);
  EXPECT_TRUE(stalled->overflowed());
  EXPECT_TRUE(stalled->empty());
  EXPECT_FALSE(reader->overflowed());
  EXPECT_EQ(ready, 2) << "for the first event and for the end";
}

TEST_F(StoreWatch, TheBoundIsInBytesToo) {
  Store::Options options;
  options.watch.bytes = 1000;
  Bed bed(options);
  const auto stream = bed.Watch(bed.Slice(), {});
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"}) {
    bed.MustCreate(bed.Slice(), Bed::SliceBody(name));
  }
  EXPECT_TRUE(stream->overflowed());
}

TEST_F(StoreWatch, WhatAWatchBeginsWithDoesNotCount) {
  Store::Options options;
  options.watch.events = 2;
  Bed bed(options);
  for (const char* name : {"a", "b", "c", "d"}) {
    bed.MustCreate(bed.Slice(), Bed::SliceBody(name));
  }
  EXPECT_EQ(Events(*bed.Watch(bed.Slice(), {})).size(), 4u);
  EXPECT_EQ(Events(*bed.Watch(bed.Slice(), From("1"))).size(), 4u);
}

TEST_F(StoreWatch, TakeGivesSeveralEventsUpToABound) {
  const auto stream = bed_.Watch(bed_.Slice(), {});
  for (const char* name : {"a", "b", "c"}) {
    bed_.MustCreate(bed_.Slice(), Bed::SliceBody(name));
  }
  const std::string all = stream->Take(1 << 20);
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 3);
  EXPECT_TRUE(stream->empty());
  EXPECT_EQ(stream->Take(1), "");
}

// API-051, the store's side.
TEST_F(StoreWatch, AStreamThatIsDroppedIsForgotten) {
  auto stream = bed_.Watch(bed_.Slice(), {});
  EXPECT_EQ(bed_.store->watches(), 1u);
  stream.reset();
  EXPECT_EQ(bed_.store->watches(), 0u);
  bed_.MustCreate(bed_.Slice(), Bed::SliceBody("a"));
}

TEST_F(StoreWatch, BookmarksGoToThoseThatAskedAndHaveNothingToSend) {
  WatchOptions options = From("1");
  const auto without = bed_.Watch(bed_.Slice(), options);
  options.bookmarks = true;
  const auto with = bed_.Watch(bed_.Slice(), options);
  bed_.store->SendBookmarks();
  bed_.store->SendBookmarks();
  EXPECT_TRUE(without->empty());
  const std::vector<Json> events = Events(*with);
  EXPECT_EQ(Briefly(events), V{"BOOKMARK @1"});
  EXPECT_FALSE(events[0]["object"]["metadata"].contains("annotations"));
}

// The store went back: its client is at a version that it has not reached.
TEST_F(StoreWatch, NoBookmarkTakesAClientBackOverChangesThatItDoesNotGet) {
  WatchOptions options = From("3");
  options.bookmarks = true;
  const auto stream = bed_.Watch(bed_.Slice(), options);
  for (const char* name : {"a", "b", "c"}) {
    bed_.store->SendBookmarks();  // At 1, 2, and 3.
    bed_.MustCreate(bed_.Slice(), Bed::SliceBody(name));
  }
  EXPECT_EQ(Briefly(Events(*stream)), (V{"BOOKMARK @3", "ADDED c@4"}));
  bed_.store->SendBookmarks();
  EXPECT_EQ(Briefly(Events(*stream)), V{"BOOKMARK @4"});
}

/// A client that lists and watches in any of the ways there are.
class Follower {
 public:
  explicit Follower(Bed& bed) : bed_(bed) {}

  void Start(unsigned way) {
    seen_.clear();
    stream_.reset();
    if (way == 0) {
      const Json list = bed_.store->List(bed_.Slice(), {}).body;
      for (const Json& item : list["items"]) See("ADDED", item);
      stream_ =
          bed_.Watch(bed_.Slice(), From(MetaText(list, "resourceVersion")));
    } else {
      stream_ = bed_.Watch(bed_.Slice(), way == 1 ? StreamedList() : From("0"));
    }
  }
  void Read(std::size_t events) {
    for (std::size_t i = 0; stream_ && i < events && !stream_->empty(); ++i) {
      const Json event = J(stream_->Take(1));
      See(TextField(event, "type"), event["object"]);
    }
  }
  const std::map<std::string, std::string>& seen() const { return seen_; }

 private:
  void See(const std::string& type, const Json& object) {
    const std::string name = MetaText(object, "name");
    const std::string version = MetaText(object, "resourceVersion");
    if (type == "ADDED") {
      EXPECT_EQ(seen_.count(name), 0u) << name << " added twice";
      seen_[name] = version;
    } else if (type == "MODIFIED") {
      EXPECT_EQ(seen_.count(name), 1u) << name << " was never added";
      EXPECT_NE(seen_[name], version) << name << " modified twice";
      seen_[name] = version;
    } else if (type == "DELETED") {
      EXPECT_EQ(seen_.erase(name), 1u) << name << " was never added";
    }
  }

  Bed& bed_;
  std::shared_ptr<WatchStream> stream_;
  std::map<std::string, std::string> seen_;
};

// API-040
TEST(StoreWatchRace, NothingIsLostOrDoubledBetweenSnapshotAndChanges) {
  std::mt19937_64 luck(7);
  for (int run = 0; run < 200 * TestScale(); ++run) {
    Bed bed;
    Follower follower(bed);
    const auto step = [&] {
      const std::string name(1, char('a' + luck() % 4));
      if (bed.store->Get(bed.Slice(name), "").code == 404) {
        bed.Create(bed.Slice(), Bed::SliceBody(name));
      } else if (luck() % 2 == 0) {
        bed.store->Delete(bed.Slice(name), {});
      } else {
        Json slice = bed.Get(bed.Slice(name));
        slice["spec"]["devices"][0]["name"] = "d" + std::to_string(luck() % 9);
        bed.Put(bed.Slice(name), slice);
      }
    };
    for (unsigned i = 0; i < luck() % 6; ++i) step();
    const unsigned way = luck() % 3;
    follower.Start(way);
    for (int i = 0; i < 12; ++i) {
      step();
      follower.Read(luck() % 3);
    }
    follower.Read(1000);
    std::map<std::string, std::string> truth;
    const Json list = bed.store->List(bed.Slice(), {}).body;
    for (const Json& item : list["items"]) {
      truth[MetaText(item, "name")] = MetaText(item, "resourceVersion");
    }
    ASSERT_EQ(follower.seen(), truth) << "run " << run << ", way " << way;
  }
}

}  // namespace
}  // namespace devmgr::apistore
