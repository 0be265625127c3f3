// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <random>

#include "apistore/bed.h"

namespace devmgr::apistore {
namespace {

class StoreList : public ::testing::Test {
 protected:
  void Fill(int count) {
    for (int i = 0; i < count; ++i) {
      bed_.MustCreate(bed_.Slice(),
                      Bed::SliceBody(std::string(1, char('a' + i))));
    }
  }
  Answer List(const ListOptions& options) {
    return bed_.store->List(bed_.Slice(), options);
  }
  Bed bed_;
};

TEST_F(StoreList, AListHasTheVersionOfTheStore) {
  Fill(2);
  const Answer answer = List({});
  EXPECT_EQ(answer.body["kind"], "ResourceSliceList");
  EXPECT_EQ(answer.body["apiVersion"], "resource.k8s.io/v1");
  EXPECT_EQ(MetaText(answer.body, "resourceVersion"), "3");
  EXPECT_EQ(Names(answer.body), (std::vector<std::string>{"a", "b"}));
}

TEST_F(StoreList, AnEmptyListHasAnEmptyListOfItems) {
  EXPECT_EQ(List({}).body["items"], Json::array());
}

// API-001, the server's side; chunks are of one moment.
TEST_F(StoreList, ChunksAreOfTheMomentOfTheFirst) {
  Fill(5);
  ListOptions options;
  options.limit = 2;
  const Json first = List(options).body;
  EXPECT_EQ(Names(first), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(first["metadata"]["remainingItemCount"], 3);
  bed_.store->Delete(bed_.Slice("d"), {});
  bed_.MustCreate(bed_.Slice(), Bed::SliceBody("bb"));
  Json changed = bed_.Get(bed_.Slice("c"));
  changed["spec"]["devices"] = Json::array();
  bed_.Put(bed_.Slice("c"), changed);
  options.continue_token = MetaText(first, "continue");
  const Json second = List(options).body;
  EXPECT_EQ(Names(second), (std::vector<std::string>{"c", "d"}));
  EXPECT_EQ(second["items"][0]["spec"]["devices"].size(), 1u);
  EXPECT_EQ(MetaText(second, "resourceVersion"),
            MetaText(first, "resourceVersion"));
  options.continue_token = MetaText(second, "continue");
  const Json third = List(options).body;
  EXPECT_EQ(Names(third), std::vector<std::string>{"e"});
  EXPECT_EQ(MetaText(third, "continue"), "");
}

// Whatever came and went since then, and in whichever chunks it is read.
TEST_F(StoreList, AListOfAnEarlierMomentIsWhatItWas) {
  std::minstd_rand random(7);
  std::map<std::string, Json> moments;
  for (int i = 0; i < 200; ++i) {
    const std::string name(1, char('a' + random() % 8));
    if (bed_.store->Get(bed_.Slice(name), "").code != 200) {
      bed_.MustCreate(bed_.Slice(), Bed::SliceBody(name));
    } else if (random() % 2 == 0) {
      bed_.store->Delete(bed_.Slice(name), {});
    } else {
      Json changed = bed_.Get(bed_.Slice(name));
      changed["spec"]["pool"]["generation"] = i;
      bed_.Put(bed_.Slice(name), changed);
    }
    const Json list = List({}).body;
    moments[MetaText(list, "resourceVersion")] = list["items"];
  }
  for (const auto& [version, items] : moments) {
    ListOptions options;
    options.resource_version = version;
    options.version_match = "Exact";
    options.limit = 3;
    Json found = Json::array();
    do {
      const Json chunk = List(options).body;
      for (const Json& item : chunk["items"]) found.push_back(item);
      options = {};
      options.limit = 3;
      options.continue_token = MetaText(chunk, "continue");
    } while (!options.continue_token.empty());
    EXPECT_EQ(found, items) << "at " << version;
  }
}

// API-001: how many follow is not counted where a selector chooses.
TEST_F(StoreList, ChunksOfWhatASelectorChoosesEndWithIt) {
  Fill(6);
  ListOptions options;
  options.limit = 1;
  options.field_selector = "metadata.name!=a";
  const Json first = List(options).body;
  EXPECT_EQ(Names(first), std::vector<std::string>{"b"});
  EXPECT_FALSE(first["metadata"].contains("remainingItemCount"));
  options.continue_token = MetaText(first, "continue");
  options.limit = 4;
  const Json rest = List(options).body;
  EXPECT_EQ(Names(rest), (std::vector<std::string>{"c", "d", "e", "f"}));
  EXPECT_EQ(MetaText(rest, "continue"), "");
}

TEST_F(StoreList, ALastChunkThatIsFullHasNoToken) {
  Fill(4);
  ListOptions options;
  options.limit = 4;
  EXPECT_EQ(MetaText(List(options).body, "continue"), "");
}

// API-002, the server's side.
TEST_F(StoreList, AnExpiredTokenIsAnsweredWithOneForTheRest) {
  Fill(3);
  ListOptions options;
  options.limit = 1;
  options.continue_token = MetaText(List(options).body, "continue");
  bed_.MustCreate(bed_.Slice(), Bed::SliceBody("d"));
  bed_.store->Compact();
  const Answer answer = List(options);
  EXPECT_EQ(answer.code, 410);
  EXPECT_EQ(answer.body["reason"], "Expired");
  options.continue_token = MetaText(answer.body, "continue");
  options.limit = 0;
  EXPECT_EQ(Names(List(options).body),
            (std::vector<std::string>{"b", "c", "d"}));
}

TEST_F(StoreList, ForeignTokensAreRefused) {
  for (const char* token : {"!", "YQ", "e30", "eyJydiI6MX0", "bnVsbA",
                            // {"ns":"","rv":999,"start":""}
                            "eyJucyI6IiIsInJ2Ijo5OTksInN0YXJ0IjoiIn0"}) {
    ListOptions options;
    options.continue_token = token;
    EXPECT_EQ(List(options).code, 400) << token;
  }
}

// API-042
TEST_F(StoreList, VersionZeroIgnoresTheLimit) {
  Fill(3);
  ListOptions options;
  options.resource_version = "0";
  options.limit = 1;
  const Json list = List(options).body;
  EXPECT_EQ(Names(list).size(), 3u);
  EXPECT_EQ(MetaText(list, "resourceVersion"), "4");
  EXPECT_FALSE(list.contains("listMeta"));
}

// API-046, without the wait, which is the server's.
TEST_F(StoreList, AVersionAboveTheStoresIsATimeoutWithItsCause) {
  Fill(1);
  ListOptions options;
  options.resource_version = "9";
  options.version_match = "NotOlderThan";
  const Answer answer = List(options);
  EXPECT_EQ(answer.code, 504);
  EXPECT_EQ(answer.body["reason"], "Timeout");
  EXPECT_EQ(answer.body["details"]["causes"][0]["reason"],
            "ResourceVersionTooLarge");
  EXPECT_EQ(answer.body["details"]["retryAfterSeconds"], 1);
  EXPECT_EQ(bed_.store->Get(bed_.Slice("a"), "9").code, 504);
  EXPECT_EQ(bed_.store->Get(bed_.Slice("a"), "x").code, 400);
}

TEST_F(StoreList, ExactlyAnEarlierMoment) {
  Fill(3);
  ListOptions options;
  options.resource_version = "2";
  options.version_match = "Exact";
  EXPECT_EQ(Names(List(options).body), std::vector<std::string>{"a"});
  bed_.store->Compact();
  EXPECT_EQ(List(options).code, 410);
}

TEST_F(StoreList, OptionsThatContradictEachOtherAreRefused) {
  ListOptions options;
  options.version_match = "Exact";
  EXPECT_EQ(List(options).code, 422);
  options.resource_version = "0";
  EXPECT_EQ(List(options).code, 422);
  options.version_match = "Roughly";
  EXPECT_EQ(List(options).code, 422);
  options.version_match = "NotOlderThan";
  options.continue_token = "x";
  EXPECT_EQ(List(options).code, 422);
  options.version_match = "";
  options.resource_version = "1";
  EXPECT_EQ(List(options).code, 400);
  options = {};
  options.limit = -1;
  EXPECT_EQ(List(options).code, 400);
  options = {};
  options.resource_version = "-1";
  EXPECT_EQ(List(options).code, 400);
}

// API-049
TEST_F(StoreList, SelectorsChoose) {
  bed_.MustCreate(bed_.Slice(), Bed::SliceBody("a"));
  bed_.MustCreate(bed_.Slice(), Bed::SliceBody("b", "E"));
  bed_.MustCreate(bed_.Slice(), Bed::SliceBody("c", "E", ""));
  Json labelled = Bed::SliceBody("d", "F", "n2");
  labelled["metadata"]["labels"] = {{"x", "y"}};
  bed_.MustCreate(bed_.Slice(), labelled);
  const auto names = [this](const std::string& fields,
                            const std::string& labels) {
    ListOptions options;
    options.field_selector = fields;
    options.label_selector = labels;
    return Names(List(options).body);
  };
  using V = std::vector<std::string>;
  EXPECT_EQ(names("spec.driver=gpu.example.com,spec.nodeName=n1", ""), V{"a"});
  EXPECT_EQ(names("spec.nodeName=", ""), V{"c"});
  EXPECT_EQ(names("", "x in (y)"), V{"d"});
  ListOptions options;
  options.field_selector = "spec.foo=1";
  EXPECT_EQ(List(options).code, 400);
  options.field_selector = "";
  options.label_selector = "a b";
  EXPECT_EQ(List(options).code, 400);
}

TEST_F(StoreList, ANamespaceShowsItsOwn) {
  for (const char* ns : {"x", "y"}) {
    bed_.MustCreate(bed_.At("pods", ns), J(R"({"metadata":{"name":"p"}})"));
  }
  EXPECT_EQ(Names(bed_.store->List(bed_.At("pods", "x"), {}).body).size(), 1u);
  EXPECT_EQ(Names(bed_.store->List(bed_.At("pods"), {}).body).size(), 2u);
}

}  // namespace
}  // namespace devmgr::apistore
