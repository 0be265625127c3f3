// SPDX-License-Identifier: Apache-2.0
#include <devmgr/manifests.h>
#include <devmgr/pod_texts.h>

#include <algorithm>
#include <utility>

#include "api/json_text.h"
#include "api/parser.h"
#include "common/status.h"

namespace devmgr {
namespace api {
namespace {

std::string TextAt(const Value& map, std::string_view key) {
  const Value* value = map.Find(key);
  const bool is_text = value != nullptr && value->kind == Value::Kind::kString;
  return is_text ? value->text : "";
}

void AddPod(const Value& root, std::vector<PodText>* pods) {
  const Value* metadata = root.Find("metadata");
  if (metadata == nullptr) return;
  ObjectName name{TextAt(*metadata, "namespace"), TextAt(*metadata, "name")};
  if (name.ns.empty()) name.ns = "default";
  const bool is_known =
      std::any_of(pods->begin(), pods->end(),
                  [&](const PodText& pod) { return pod.name == name; });
  if (name.name.empty() || is_known) return;
  pods->push_back({std::move(name), root.line, JsonText(root)});
}

/// `kind` and `version` stand in where an item of a typed list, such as a
/// PodList, has none of its own.
void AddPods(const Value& root, std::string kind, std::string version,
             std::vector<PodText>* pods) {
  constexpr std::string_view kList = "List";
  if (std::string own = TextAt(root, "kind"); !own.empty()) kind = own;
  if (std::string own = TextAt(root, "apiVersion"); !own.empty()) version = own;
  if (version != "v1") return;
  if (kind == "Pod") return AddPod(root, pods);
  const Value* items = root.Find("items");
  if (!kind.ends_with(kList) || items == nullptr) return;
  kind.resize(kind.size() - kList.size());
  for (const ValuePtr& item : items->items) {
    AddPods(*item, kind, kind.empty() ? "" : version, pods);
  }
}

}  // namespace
}  // namespace api

absl::StatusOr<std::vector<PodText>> PodTextsOf(std::string_view text,
                                                std::string_view file_name) {
  const api::ParsedText parsed =
      api::ParseText(text, file_name.ends_with(".json"));
  if (!parsed.error.empty()) {
    ManifestProblem problem;
    problem.file = std::string(file_name);
    problem.line = parsed.error_line;
    problem.message = parsed.error;
    return InvalidArgumentError("{}", problem.ToString());
  }
  std::vector<PodText> pods;
  for (const api::ValuePtr& document : parsed.documents) {
    api::AddPods(*document, "", "", &pods);
  }
  return pods;
}

}  // namespace devmgr
