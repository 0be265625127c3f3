// SPDX-License-Identifier: Apache-2.0
//
// Discovery in its plain form, which is what clients get that ask for the
// aggregated one, too.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "apistore/api_request.h"

namespace devmgr::apistore {
namespace {

Json GroupVersion(const std::string& group, const std::string& version) {
  return {{"groupVersion", group + "/" + version}, {"version", version}};
}

Json GroupOf(const ResourceType& type) {
  Json versions = Json::array();
  for (const ServedVersion& version : type.versions) {
    versions.push_back(GroupVersion(type.group, version.name));
  }
  Json preferred = versions.front();
  return {{"name", type.group},
          {"versions", std::move(versions)},
          {"preferredVersion", std::move(preferred)}};
}

/// The types of one version of a group; nothing when there is none.
std::optional<Answer> Resources(const Store& store, std::string_view group,
                                std::string_view version) {
  Json resources = Json::array();
  for (const ResourceType& type : store.types()) {
    const auto served = [&](const ServedVersion& one) {
      return one.name == version;
    };
    if (type.group != group ||
        std::none_of(type.versions.begin(), type.versions.end(), served)) {
      continue;
    }
    resources.push_back({{"name", type.resource},
                         {"singularName", type.singular},
                         {"namespaced", type.namespaced},
                         {"kind", type.kind},
                         {"verbs",
                          {"create", "delete", "deletecollection", "get",
                           "list", "patch", "update", "watch"}}});
    if (!type.has_status) continue;
    resources.push_back({{"name", type.resource + "/status"},
                         {"singularName", ""},
                         {"namespaced", type.namespaced},
                         {"kind", type.kind},
                         {"verbs", {"get", "patch", "update"}}});
  }
  if (resources.empty()) return std::nullopt;
  const std::string name(version);
  Answer answer;
  answer.body = {
      {"kind", "APIResourceList"},
      {"apiVersion", "v1"},
      {"groupVersion", group.empty() ? name : std::string(group) + "/" + name},
      {"resources", std::move(resources)}};
  return answer;
}

Answer Groups(const Store& store) {
  Json groups = Json::array();
  std::vector<std::string> seen;
  for (const ResourceType& type : store.types()) {
    if (type.group.empty() ||
        std::find(seen.begin(), seen.end(), type.group) != seen.end()) {
      continue;
    }
    seen.push_back(type.group);
    groups.push_back(GroupOf(type));
  }
  Answer answer;
  answer.body = {{"kind", "APIGroupList"},
                 {"apiVersion", "v1"},
                 {"groups", std::move(groups)}};
  return answer;
}

std::optional<Answer> Group(const Store& store, std::string_view name) {
  for (const ResourceType& type : store.types()) {
    if (type.group != name || type.group.empty()) continue;
    Answer answer;
    answer.body = GroupOf(type);
    answer.body["kind"] = "APIGroup";
    answer.body["apiVersion"] = "v1";
    return answer;
  }
  return std::nullopt;
}

Json VersionBody(std::string_view git_version) {
  // v1.36.0+devmgr
  const std::size_t first = git_version.find('.');
  const std::size_t second = git_version.find('.', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) {
    return {{"major", ""}, {"minor", ""}, {"gitVersion", git_version}};
  }
  return {{"major", git_version.substr(1, first - 1)},
          {"minor", git_version.substr(first + 1, second - first - 1)},
          {"gitVersion", git_version},
          {"platform", "linux/amd64"}};
}

}  // namespace

std::optional<Answer> Discover(const Store& store, std::string_view target,
                               std::string_view git_version) {
  std::string_view path = target.substr(0, target.find('?'));
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  Answer answer;
  if (path == "/healthz" || path == "/livez" || path == "/readyz") {
    answer.body = "ok";
    return answer;
  }
  if (path == "/version") {
    answer.body = VersionBody(git_version);
    return answer;
  }
  if (path == "/api") {
    answer.body = {{"kind", "APIVersions"}, {"versions", Json::array({"v1"})}};
    return answer;
  }
  if (path == "/apis") return Groups(store);
  if (path == "/api/v1") return Resources(store, "", "v1");
  constexpr std::string_view kApis = "/apis/";
  if (path.substr(0, kApis.size()) != kApis) return std::nullopt;
  path.remove_prefix(kApis.size());
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos) return Group(store, path);
  const std::string_view version = path.substr(slash + 1);
  if (version.find('/') != std::string_view::npos) return std::nullopt;
  return Resources(store, path.substr(0, slash), version);
}

}  // namespace devmgr::apistore
