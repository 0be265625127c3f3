// SPDX-License-Identifier: Apache-2.0
//
// What an API server may send as a list and as a watch. The first byte says how
// long the pieces are in which it comes: that must not matter.
#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "fuzz/fuzz.h"
#include "source/api/event_splitter.h"
#include "source/api/list_reader.h"
#include "source/api/reflector.h"

namespace devmgr::fuzz {
namespace {

using apiserver::EventSplitter;
using apiserver::ListReader;
using apiserver::Reflector;

/// What a reader makes of the text, in pieces of `size` bytes.
template <typename Reader>
std::vector<std::string> Read(Reader reader, std::string_view text,
                              std::size_t size) {
  std::vector<std::string> parts;
  absl::Status status;
  for (std::size_t at = 0; status.ok() && at < text.size(); at += size) {
    status = reader.Feed(text.substr(at, size), [&](std::string_view part) {
      parts.emplace_back(part);
      return absl::OkStatus();
    });
  }
  if (status.ok()) status = reader.Finish();
  if (!status.ok()) RequireReadable(MessageOf(status));
  parts.push_back(status.ok() ? "good" : "bad");
  return parts;
}

void CheckReflector(std::string_view text, std::size_t size, bool is_listed) {
  Reflector::TimePoint now{std::chrono::hours(1)};
  Reflector reflector(
      apiserver::PodsOfNode("n1"), {}, [] { return 0.5; }, now);
  Require(reflector.Next(now).has_value(), "it begins at once");
  reflector.OnHead(now, {.code = 200, .retry_after = {}});
  if (is_listed) {
    reflector.OnData(now, R"({"metadata":{"resourceVersion":"1"},"items":[]})");
    reflector.OnEnd(now, absl::OkStatus());
    Require(reflector.Next(now).has_value(), "it watches at once");
    reflector.OnHead(now, {.code = 200, .retry_after = {}});
  }
  bool goes_on = true;
  for (std::size_t at = 0; goes_on && at < text.size(); at += size) {
    goes_on = reflector.OnData(now, text.substr(at, size));
  }
  if (goes_on) reflector.OnEnd(now, absl::OkStatus());
  Require(reflector.phase() == Reflector::Phase::kWaiting,
          "the request has ended");
  Require(reflector.WakeAt().has_value(), "it goes on");
  Require(!reflector.resource_version().empty() || reflector.lists() == 0,
          "what was listed has a version");
  if (!reflector.last_error().empty()) RequireReadable(reflector.last_error());
  for (const auto& [uid, object] : reflector.store().objects()) {
    Require(object->object != nullptr || object->malformed != nullptr ||
                !object->problem.empty(),
            "an object is one, or says why not");
  }
  for (const auto& [uid, problem] : reflector.store().problems()) {
    RequireReadable(problem.problem);
  }
}

}  // namespace
}  // namespace devmgr::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using devmgr::fuzz::Require;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1,
                              size - 1);
  const std::size_t piece = std::size_t{1} + data[0];
  const std::size_t whole = std::max<std::size_t>(text.size(), 1);
  using namespace devmgr::fuzz;  // NOLINT(google-build-using-namespace)
  Require(
      Read(EventSplitter(), text, piece) == Read(EventSplitter(), text, whole),
      "events do not depend on the cut");
  Require(Read(ListReader(), text, piece) == Read(ListReader(), text, whole),
          "items do not depend on the cut");
  CheckReflector(text, piece, /*is_listed=*/false);
  CheckReflector(text, piece, /*is_listed=*/true);
  return 0;
}
