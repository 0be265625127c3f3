// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "source/api/api_texts.h"
#include "source/api/reflector.h"

namespace devmgr::apiserver {

/// A reflector of the pods of node n1, a clock that is moved, and the server's
/// part played by the test.
class ReflectorFixture : public ::testing::Test {
 protected:
  using Ms = std::chrono::milliseconds;

  void Start(Reflector::Options options = {}) {
    reflector.emplace(
        PodsOfNode("n1"), options, [this] { return random; }, now);
  }

  /// The target of the request that is due; `none` when none is.
  std::string Next() {
    const std::optional<ApiRequest> request = reflector->Next(now);
    if (request) last = *request;
    return request ? request->target : "none";
  }
  /// Moves the clock to the next request, and sends that; its target.
  std::string WaitForNext() {
    const auto due = reflector->WakeAt();
    if (!due) return "never";
    waited = std::chrono::duration_cast<Ms>(*due - now);
    now = std::max(now, *due);
    return Next();
  }

  void Answer(const std::string& body, int code = 200,
              std::optional<std::chrono::seconds> retry_after = {}) {
    Begin(code, retry_after);
    if (Data(body)) End();
  }
  void Begin(int code = 200,
             std::optional<std::chrono::seconds> retry_after = {}) {
    reflector->OnHead(now, {.code = code, .retry_after = retry_after});
  }
  bool Data(const std::string& bytes) { return reflector->OnData(now, bytes); }
  void End() { reflector->OnEnd(now, absl::OkStatus()); }
  void Break() {
    reflector->OnEnd(now, absl::UnavailableError("connection reset"));
  }
  /// Lists `items` at `version`, and begins the watch.
  void ListAndWatch(const std::vector<std::string>& items,
                    const std::string& version) {
    ASSERT_NE(WaitForNext(), "none");
    Answer(ListText(items, version));
    ASSERT_NE(WaitForNext().find("watch=true"), std::string::npos);
    Begin();
    TakeChanges();
  }

  std::vector<std::string> TakeChanges() {
    std::vector<std::string> texts;
    for (const ObjectChange& change : reflector->TakeChanges()) {
      texts.push_back((change.kind == ObjectChange::Kind::kUpsert ? "+" : "-") +
                      change.object->uid + "@" +
                      change.object->resource_version);
    }
    return texts;
  }
  std::vector<std::string> Uids() const {
    std::vector<std::string> uids;
    for (const auto& [uid, object] : reflector->store().objects()) {
      uids.push_back(uid);
    }
    return uids;
  }

  Reflector::TimePoint now{std::chrono::hours(1)};
  double random = 0;
  std::optional<Reflector> reflector;
  ApiRequest last;
  Ms waited{0};
};

}  // namespace devmgr::apiserver
