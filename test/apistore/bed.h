// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apistore/patch.h"
#include "apistore/store.h"

namespace devmgr::apistore {

inline constexpr std::int64_t kNow = 1'780'000'000;  // 2026-05-28T20:26:40Z

/// JSON as it stands in a test.
inline Json J(std::string_view text) {
  absl::StatusOr<Json> json = ParseForeignJson(text);
  EXPECT_TRUE(json.ok()) << text;
  return json.ok() ? *json : Json();
}

/// A store whose random bits are a row of numbers.
struct Bed {
  explicit Bed(Store::Options options = {}) {
    options.random = [state = std::uint64_t{1}]() mutable {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      return state ^ (state >> 31);
    };
    store = std::make_unique<Store>(BuiltinTypes(), std::move(options));
  }

  Target At(std::string_view resource, std::string ns = "",
            std::string name = "", std::size_t version = 0) const {
    for (const ResourceType& type : store->types()) {
      if (type.resource == resource) {
        return {&type, version, std::move(ns), std::move(name)};
      }
    }
    ADD_FAILURE() << "no resource " << resource;
    return {};
  }
  Target Slice(std::string name = "") const {
    return At("resourceslices", "", std::move(name));
  }

  /// A slice of driver D (`gpu.example.com`) on node n1, or as given.
  static Json SliceBody(const std::string& name,
                        const std::string& driver = "gpu.example.com",
                        const std::string& node = "n1") {
    Json slice = {{"metadata", {{"name", name}}},
                  {"spec",
                   {{"driver", driver},
                    {"pool", {{"name", "p"}, {"generation", 1}}},
                    {"devices", Json::array({{{"name", "gpu-0"}}})}}}};
    if (!node.empty()) slice["spec"]["nodeName"] = node;
    return slice;
  }
  Answer Create(const Target& target, Json body) {
    WriteOptions options;
    options.now = kNow;
    return store->Create(target, std::move(body), options);
  }
  Json MustCreate(const Target& target, Json body) {
    Answer answer = Create(target, std::move(body));
    EXPECT_EQ(answer.code, 201) << answer.body;
    return answer.body;
  }
  Answer Put(const Target& target, Json body, bool status = false) {
    WriteOptions options;
    options.now = kNow;
    options.status = status;
    return store->Put(target, std::move(body), options);
  }
  Answer Patch(const Target& target, PatchKind kind, std::string_view patch,
               bool status = false) {
    WriteOptions options;
    options.now = kNow;
    options.status = status;
    return store->Patch(target, kind, J(patch), options);
  }
  Json Get(const Target& target) const { return store->Get(target, "").body; }
  std::shared_ptr<WatchStream> Watch(const Target& target,
                                     const WatchOptions& options) {
    auto result = store->Watch(target, options);
    if (const auto* answer = std::get_if<Answer>(&result)) {
      ADD_FAILURE() << answer->body;
      return nullptr;
    }
    return std::get<std::shared_ptr<WatchStream>>(result);
  }

  std::unique_ptr<Store> store;
};

/// The events that wait in a stream.
inline std::vector<Json> Events(WatchStream& stream) {
  std::vector<Json> events;
  while (!stream.empty()) {
    const std::string line = stream.Take(1);
    EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
    events.push_back(J(line));
  }
  return events;
}

/// `ADDED name@version`.
inline std::vector<std::string> Briefly(const std::vector<Json>& events) {
  std::vector<std::string> lines;
  for (const Json& event : events) {
    lines.push_back(TextField(event, "type") + " " +
                    MetaText(event["object"], "name") + "@" +
                    MetaText(event["object"], "resourceVersion"));
  }
  return lines;
}

inline std::vector<std::string> Names(const Json& list) {
  std::vector<std::string> names;
  for (const Json& item : list["items"]) {
    names.push_back(MetaText(item, "name"));
  }
  return names;
}

}  // namespace devmgr::apistore
