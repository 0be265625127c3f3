// SPDX-License-Identifier: Apache-2.0
#include "endpoint/watches.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apistore/bed.h"

namespace devmgr::endpoint {
namespace {

/// A client that takes nothing, as long as `takes` is not set.
struct Client final : http::StreamWriter {
  bool Write(std::string chunk) override {
    text += chunk;
    waiting += takes ? 0 : chunk.size();
    return true;
  }
  std::size_t pending() const override { return waiting; }
  void End() override { ++ended; }
  void Cut() override {}
  void FallSilent() override {}

  bool takes = false;
  std::string text;
  std::size_t waiting = 0;
  int ended = 0;
};

struct OneClient final : http::Responder {
  void Respond(http::Response) override {}
  std::shared_ptr<http::StreamWriter> Stream(
      int, std::vector<http::Header>, http::StreamEvents its_events) override {
    events = std::move(its_events);
    return client;
  }
  void FallSilent() override {}
  bool connected() const override { return true; }

  const std::shared_ptr<Client> client = std::make_shared<Client>();
  http::StreamEvents events;
};

class WatchesTest : public ::testing::Test {
 protected:
  static apistore::Store::Options Bounds() {
    apistore::Store::Options options;
    options.watch.events = 3;
    return options;
  }
  void SetUp() override {
    watches_.Open("d", bed_.Watch(bed_.Slice(), {}), /*bookmarks=*/true,
                  std::chrono::hours(1), responder_);
    RunPosted();
  }
  void RunPosted() {
    for (const auto& task : std::exchange(posted_, {})) task();
  }
  void Create(int count) {
    for (int i = 0; i < count; ++i) {
      bed_.MustCreate(bed_.Slice(), apistore::Bed::SliceBody(
                                        "s" + std::to_string(created_++)));
      RunPosted();
    }
  }

  apistore::Bed bed_{Bounds()};
  OneClient responder_;
  std::vector<std::function<void()>> posted_;
  Watches watches_{{[this](std::function<void()> task) {
                      posted_.push_back(std::move(task));
                    },
                    [](std::chrono::milliseconds, std::function<void()>) {},
                    [this] { return bed_.store->revision(); }}};
  int created_ = 0;
};

TEST_F(WatchesTest, AClientThatReadsGetsAllOfIt) {
  responder_.client->takes = true;
  Create(20);
  EXPECT_NE(responder_.client->text.find("\"s19\""), std::string::npos);
  EXPECT_EQ(responder_.client->ended, 0);
}

// API-048
TEST_F(WatchesTest, AStalledWatchEndsAtItsBound) {
  // One has left for the client, and three wait.
  Create(4);
  EXPECT_EQ(responder_.client->ended, 0);
  Create(1);
  EXPECT_EQ(responder_.client->ended, 1);
  Create(5);
  EXPECT_EQ(responder_.client->ended, 1);
  // The server closes it when the client does not take the end in time.
  EXPECT_EQ(watches_.CountOf("d"), 1u);
  responder_.events.closed();
  EXPECT_EQ(watches_.CountOf("d"), 0u);
}

}  // namespace
}  // namespace devmgr::endpoint
