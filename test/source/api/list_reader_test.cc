// SPDX-License-Identifier: Apache-2.0
#include "source/api/list_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace devmgr::apiserver {
namespace {

using ::testing::ElementsAre;

constexpr char kPage[] = R"({
  "kind": "PodList", "x": [1, {"items": [{}]}], "y": "}\"{", "z": null,
  "metadata": {"resourceVersion": "100", "continue": "to\u002fken"},
  "items": [{"a": "]}"}, {"b": [{}]}]
})";

class Reading {
 public:
  explicit Reading(ListReader::Limits limits = {}) : reader(limits) {}

  absl::Status Feed(std::string_view bytes) {
    return reader.Feed(bytes, [this](std::string_view text) {
      items.emplace_back(text);
      return absl::OkStatus();
    });
  }

  ListReader reader;
  std::vector<std::string> items;
};

void ExpectThePage(const Reading& reading) {
  EXPECT_TRUE(reading.reader.Finish().ok()) << reading.reader.Finish();
  EXPECT_THAT(reading.items, ElementsAre(R"({"a": "]}"})", R"({"b": [{}]})"));
  EXPECT_EQ(reading.reader.meta().resource_version, "100");
  EXPECT_EQ(reading.reader.meta().continue_token, "to/ken");
}

TEST(ListReaderTest, ReadsAPageCutAnywhere) {
  const std::string_view page = kPage;
  for (std::size_t cut = 0; cut <= page.size(); ++cut) {
    Reading reading;
    ASSERT_TRUE(reading.Feed(page.substr(0, cut)).ok());
    ASSERT_TRUE(reading.Feed(page.substr(cut)).ok()) << "cut at " << cut;
    ExpectThePage(reading);
  }
}

TEST(ListReaderTest, ReadsAPageByteByByte) {
  Reading reading;
  for (const char c : std::string_view(kPage)) {
    ASSERT_TRUE(reading.Feed(std::string_view(&c, 1)).ok());
  }
  ExpectThePage(reading);
}

TEST(ListReaderTest, ReadsTheListMetadataOfSlicesOfKubernetes1310) {
  Reading reading;
  ASSERT_TRUE(reading
                  .Feed(R"({"metadata":{},"items":[],)"
                        R"("listMeta":{"resourceVersion":"7"}})")
                  .ok());
  EXPECT_TRUE(reading.reader.Finish().ok());
  EXPECT_EQ(reading.reader.meta().resource_version, "7");
}

TEST(ListReaderTest, TakesNoItemsForNull) {
  Reading reading;
  ASSERT_TRUE(
      reading.Feed(R"({"items":null,"metadata":{"resourceVersion":"7"}})")
          .ok());
  EXPECT_TRUE(reading.reader.Finish().ok());
  EXPECT_THAT(reading.items, ElementsAre());
}

TEST(ListReaderTest, ReportsAListThatEndsInTheMiddle) {
  Reading reading;
  ASSERT_TRUE(
      reading.Feed(R"({"metadata":{"resourceVersion":"7"},"items":[{})").ok());
  EXPECT_EQ(reading.reader.Finish().code(), absl::StatusCode::kDataLoss);
}

TEST(ListReaderTest, ReportsAListWithoutAResourceVersion) {
  Reading reading;
  ASSERT_TRUE(reading.Feed(R"({"items":[]})").ok());
  EXPECT_EQ(reading.reader.Finish().message(),
            "the list has no metadata.resourceVersion");
}

TEST(ListReaderTest, ReportsAPageThatIsTooLarge) {
  Reading reading({.page = 20});
  const absl::Status status = reading.Feed(R"({"items":[{},{},{},{},{}]})");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "a page of the list exceeds 20 bytes");
}

TEST(ListReaderTest, NamesAnItemThatIsTooLarge) {
  Reading reading({.item = 60});
  const absl::Status status = reading.Feed(
      R"({"items":[{"metadata":{"name":"big","namespace":"ns"},)" +
      std::string(R"("spec":")") + std::string(60, 'x') + R"("}]})");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "object 'ns/big' in the list exceeds 60 bytes");
}

TEST(ListReaderTest, DoesNotKeepWhatItDoesNotRead) {
  Reading reading;
  ASSERT_TRUE(
      reading.Feed(R"({"managedFields":")" + std::string(1 << 20, 'x')).ok());
  ASSERT_TRUE(
      reading.Feed(R"(","items":[],"metadata":{"resourceVersion":"1"}})").ok());
  EXPECT_TRUE(reading.reader.Finish().ok());
}

TEST(ListReaderTest, RefusesWhatIsNoList) {
  for (const char* text : {"<html>", "[]", R"({"items":[7]})", R"({a:1})",
                           R"({"a" 1})", R"({"a":})", "{} x"}) {
    Reading reading;
    EXPECT_EQ(reading.Feed(text).code(), absl::StatusCode::kDataLoss) << text;
  }
}

}  // namespace
}  // namespace devmgr::apiserver
