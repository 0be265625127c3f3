// SPDX-License-Identifier: Apache-2.0
//
// Requests of drivers and other clients about objects: a line with method and
// target, one with the type of the body, and the body; a patch, for one, or a
// selector in the query. The store has a few objects, and is a store
// afterwards, too.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "apistore/api_request.h"
#include "apistore/object_meta.h"
#include "apistore/patch.h"
#include "common/status.h"
#include "fuzz/fuzz.h"

namespace devmgr::fuzz {
namespace {

using apistore::Answer;
using apistore::ApiBody;
using apistore::ApiError;
using apistore::ApiRequest;
using apistore::Json;
using apistore::ObjectPtr;
using apistore::Store;
using apistore::Verb;

constexpr std::int64_t kNow = 1'780'000'000;

constexpr const char* kObjects[] = {
    R"({"kind":"ResourceSlice","apiVersion":"resource.k8s.io/v1","metadata":
    {"name":"a","labels":{"zone":"1"}},"spec":{"driver":"d.example.com",
    "nodeName":"n1","pool":{"name":"n1","generation":1,"resourceSliceCount":1},
    "devices":[{"name":"gpu-0","attributes":{"x":{"int":1}}}]}})",
    R"({"kind":"ResourceSlice","apiVersion":"resource.k8s.io/v1","metadata":
    {"name":"b"},"spec":{"driver":"e.example.com","nodeName":"n2","pool":
    {"name":"n2","generation":1,"resourceSliceCount":1},"devices":[]}})",
    R"({"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1","metadata":
    {"name":"c","namespace":"default"},"spec":{"devices":{"requests":[{"name":
    "r","exactly":{"deviceClassName":"gpu"}}]}},"status":{"allocation":
    {"devices":{"results":[{"request":"r","driver":"d.example.com","pool":"n1",
    "device":"gpu-0"}]}}}})",
    R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":
    "default","labels":{"app":"x"}},"spec":{"nodeName":"n1","containers":
    [{"name":"main","image":"i"}]}})"};

Store FilledStore() {
  Store::Options options;
  options.random = [state = std::uint64_t{1}]() mutable {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return state ^ (state >> 31);
  };
  return Store(apistore::BuiltinTypes(), std::move(options));
}

void Fill(Store& store) {
  for (const char* const text : kObjects) {
    Require(store.Load(*apistore::ParseForeignJson(text), kNow).ok(),
            "the store takes what it begins with");
  }
}

/// The line at the beginning of `rest`, which is taken from it.
std::string_view TakeLine(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return line;
}

/// All objects, by what says which one and which state of it.
std::set<std::string> Everything(const Store& store) {
  std::set<std::string> texts;
  for (const auto& type : store.types()) {
    for (const ObjectPtr& object : store.All(type)) {
      texts.insert(type.resource + apistore::Dump(*object));
    }
  }
  return texts;
}

void CheckStore(const Store& store) {
  for (const auto& type : store.types()) {
    for (const ObjectPtr& object : store.All(type)) {
      Require(store.Find(type, apistore::KeyOf(*object)) == object,
              "an object is found by the name that it has");
      Require(!apistore::MetaText(*object, "uid").empty(), "it has a UID");
      const std::string text = apistore::Dump(*object);
      const auto parsed = apistore::ParseForeignJson(text);
      Require(parsed.ok() && *parsed == *object, "it can be stored and read");
      const std::string version =
          apistore::MetaText(*object, "resourceVersion");
      Require(!version.empty() && std::stoull(version) <= store.revision(),
              "its version is one that the store has had");
    }
  }
}

void CheckAnswer(const Answer& answer) {
  const auto parsed = apistore::ParseForeignJson(apistore::BodyOf(answer));
  Require(parsed.ok(), "a body is JSON");
  if (answer.ok()) return;
  Require(apistore::TextField(answer.body, "kind") == "Status" &&
              answer.body["code"] == answer.code,
          "what is refused says so");
  Require(!apistore::TextField(answer.body, "message").empty(), "and why");
}

/// A list is what its pages are, and no more than a list without selectors.
void CheckList(Store& store, ApiRequest request) {
  const auto list = [&] {
    return apistore::ServeRequest(store, request, {}, kNow);
  };
  for (const char* const name :
       {"continue", "limit", "resourceVersion", "resourceVersionMatch"}) {
    request.query.erase(name);
  }
  const Answer whole = list();
  if (!whole.ok()) return;
  request.query["limit"] = "1";
  Json joined = Json::array();
  for (int pages = 0;; ++pages) {
    Require(pages < 10, "pages come to an end");
    const Answer page = list();
    Require(page.ok(), "a page that was promised is there");
    for (const Json& item : page.body["items"]) joined.push_back(item);
    const std::string next = apistore::MetaText(page.body, "continue");
    if (next.empty()) break;
    request.query["continue"] = next;
  }
  Require(joined == whole.body["items"], "pages together are the list");
  ApiRequest all = request;
  all.query.clear();
  const Answer every = apistore::ServeRequest(store, all, {}, kNow);
  for (const Json& item : whole.body["items"]) {
    const Json& items = every.body["items"];
    Require(std::find(items.begin(), items.end(), item) != items.end(),
            "a selector adds nothing");
  }
}

void CheckPatches(std::string_view text) {
  const auto patch = apistore::ParseForeignJson(text);
  if (!patch.ok()) return RequireReadable(MessageOf(patch.status()));
  Json once = *apistore::ParseForeignJson(kObjects[0]);
  apistore::MergePatch(once, *patch);
  Json twice = once;
  apistore::MergePatch(twice, *patch);
  Require(once == twice, "a merge patch says what is wanted");
  Json patched = *apistore::ParseForeignJson(kObjects[0]);
  if (const auto status = apistore::JsonPatch(patched, *patch); !status.ok()) {
    RequireReadable(MessageOf(status));
  }
}

}  // namespace
}  // namespace devmgr::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  namespace apistore = devmgr::apistore;
  using devmgr::fuzz::Require;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::string_view first = devmgr::fuzz::TakeLine(rest);
  const std::string_view type = devmgr::fuzz::TakeLine(rest);
  const std::size_t space = std::min(first.find(' '), first.size());
  const std::string_view method = first.substr(0, space);
  first.remove_prefix(std::min(space + 1, first.size()));

  apistore::Store store = devmgr::fuzz::FilledStore();
  devmgr::fuzz::Fill(store);
  devmgr::fuzz::CheckPatches(rest);
  const auto read = apistore::ReadApiRequest(store, method, first);
  if (const auto* error = std::get_if<apistore::ApiError>(&read)) {
    devmgr::fuzz::CheckAnswer(apistore::Refuse(*error));
    return 0;
  }
  const auto& request = std::get<apistore::ApiRequest>(read);
  if (request.verb == apistore::Verb::kWatch) {
    auto watch = store.Watch(request.target, apistore::WatchOptionsOf(request));
    if (const auto* answer = std::get_if<apistore::Answer>(&watch)) {
      devmgr::fuzz::CheckAnswer(*answer);
    } else {
      std::get<1>(watch)->Take(1 << 20);
    }
    return 0;
  }
  const std::uint64_t revision = store.revision();
  const auto before = devmgr::fuzz::Everything(store);
  const apistore::Answer answer =
      apistore::ServeRequest(store, request, {type, rest}, devmgr::fuzz::kNow);
  devmgr::fuzz::CheckAnswer(answer);
  devmgr::fuzz::CheckStore(store);
  Require(store.revision() >= revision, "versions only rise");
  if (!answer.ok() || request.verb == apistore::Verb::kGet ||
      request.verb == apistore::Verb::kList) {
    Require(devmgr::fuzz::Everything(store) == before,
            "what is refused or only read changes nothing");
  }
  if (request.verb == apistore::Verb::kList) {
    devmgr::fuzz::CheckList(store, request);
  }
  return 0;
}
