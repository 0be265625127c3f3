// SPDX-License-Identifier: Apache-2.0
#include "apistore/patch.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/foreign_json.h"
#include "common/status.h"

namespace devmgr::apistore {
namespace {

int DepthOf(const Json& value) {
  int deepest = 0;
  if (value.is_structured()) {
    for (const Json& part : value) deepest = std::max(deepest, DepthOf(part));
    ++deepest;
  }
  return deepest;
}

using Path = std::vector<std::string>;

absl::StatusOr<Path> ReadPath(const Json& operation, const char* field) {
  const auto it = operation.find(field);
  if (it == operation.end() || !it->is_string()) {
    return InvalidArgumentError("operation lacks '{}'", field);
  }
  const auto& text = it->get_ref<const std::string&>();
  Path path;
  if (text.empty()) return path;
  if (text.front() != '/') {
    return InvalidArgumentError("path '{}' does not begin with '/'", text);
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '/') {
      path.emplace_back();
    } else if (text[i] != '~') {
      path.back() += text[i];
    } else if (i + 1 < text.size() &&
               (text[i + 1] == '0' || text[i + 1] == '1')) {
      path.back() += text[++i] == '0' ? '~' : '/';
    } else {
      return InvalidArgumentError("path '{}' has a '~' that escapes nothing",
                                  text);
    }
  }
  if (path.size() > kMaxJsonDepth) {
    return InvalidArgumentError("path has {} parts, {} at most", path.size(),
                                kMaxJsonDepth);
  }
  return path;
}

/// An index below `bound`, written as RFC 6901 wants it.
std::optional<std::size_t> IndexIn(const std::string& text, std::size_t bound) {
  if (text.empty() || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  std::size_t index = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, index);
  if (error != std::errc() || stop != end || index >= bound) {
    return std::nullopt;
  }
  return index;
}

/// What `token` names in `value`, or null.
Json* Child(Json& value, const std::string& token) {
  if (value.is_object()) {
    const auto it = value.find(token);
    return it == value.end() ? nullptr : &*it;
  }
  if (!value.is_array()) return nullptr;
  const std::optional<std::size_t> index = IndexIn(token, value.size());
  return index.has_value() ? &value[*index] : nullptr;
}

Json* Find(Json& root, const Path& path, std::size_t parts) {
  Json* value = &root;
  for (std::size_t i = 0; i < parts && value != nullptr; ++i) {
    value = Child(*value, path[i]);
  }
  return value;
}

absl::Status Missing(const char* op) {
  return FailedPreconditionError(
      "{} operation does not apply: doc is missing "
      "the path",
      op);
}

absl::Status Add(Json& root, const Path& path, Json value) {
  if (path.empty()) {
    root = std::move(value);
    return absl::OkStatus();
  }
  if (static_cast<int>(path.size()) + DepthOf(value) > kMaxJsonDepth) {
    return FailedPreconditionError("the result has more than {} levels",
                                   kMaxJsonDepth);
  }
  Json* parent = Find(root, path, path.size() - 1);
  if (parent == nullptr) return Missing("add");
  const std::string& token = path.back();
  if (parent->is_object()) {
    (*parent)[token] = std::move(value);
    return absl::OkStatus();
  }
  if (!parent->is_array()) return Missing("add");
  const std::optional<std::size_t> index =
      token == "-" ? parent->size() : IndexIn(token, parent->size() + 1);
  if (!index.has_value()) return Missing("add");
  parent->insert(parent->begin() + static_cast<Json::difference_type>(*index),
                 std::move(value));
  return absl::OkStatus();
}

absl::StatusOr<Json> Remove(Json& root, const Path& path) {
  if (path.empty()) return std::exchange(root, Json());
  Json* parent = Find(root, path, path.size() - 1);
  Json* child = parent == nullptr ? nullptr : Child(*parent, path.back());
  if (child == nullptr) return Missing("remove");
  Json removed = std::move(*child);
  if (parent->is_object()) {
    parent->erase(path.back());
  } else {
    parent->erase(static_cast<std::size_t>(child - &(*parent)[0]));
  }
  return removed;
}

bool IsBelow(const Path& path, const Path& above) {
  return path.size() > above.size() &&
         std::equal(above.begin(), above.end(), path.begin());
}

absl::Status MoveOrCopy(Json& root, const Json& operation, const Path& path,
                        bool move, std::size_t& copied) {
  DEVMGR_ASSIGN_OR_RETURN(const Path from, ReadPath(operation, "from"));
  if (move) {
    if (IsBelow(path, from)) {
      return FailedPreconditionError("a value cannot be moved into itself");
    }
    DEVMGR_ASSIGN_OR_RETURN(Json value, Remove(root, from));
    return Add(root, path, std::move(value));
  }
  const Json* value = Find(root, from, from.size());
  if (value == nullptr) return Missing("copy");
  copied += value->dump(-1, ' ', false, Json::error_handler_t::replace).size();
  if (copied > kMaxCopiedBytes) {
    return FailedPreconditionError("copies add more than {} bytes",
                                   kMaxCopiedBytes);
  }
  return Add(root, path, *value);
}

absl::Status Apply(Json& root, const Json& operation, std::size_t& copied) {
  if (!operation.is_object() || !operation.contains("op") ||
      !operation["op"].is_string()) {
    return InvalidArgumentError("operation lacks 'op'");
  }
  const std::string op = operation["op"].get<std::string>();
  DEVMGR_ASSIGN_OR_RETURN(const Path path, ReadPath(operation, "path"));
  if (op == "remove") return Remove(root, path).status();
  if (op == "move" || op == "copy") {
    return MoveOrCopy(root, operation, path, op == "move", copied);
  }
  if (op != "add" && op != "replace" && op != "test") {
    return InvalidArgumentError("unexpected kind of operation: '{}'", op);
  }
  const auto value = operation.find("value");
  if (value == operation.end()) {
    return InvalidArgumentError("operation '{}' lacks 'value'", op);
  }
  if (op == "add") return Add(root, path, *value);
  Json* target = Find(root, path, path.size());
  if (op == "test") {
    if (target == nullptr ? !value->is_null() : *target != *value) {
      return FailedPreconditionError("testing value {} failed",
                                     operation["path"].get<std::string>());
    }
    return absl::OkStatus();
  }
  if (target == nullptr) return Missing("replace");
  if (static_cast<int>(path.size()) + DepthOf(*value) > kMaxJsonDepth) {
    return FailedPreconditionError("the result has more than {} levels",
                                   kMaxJsonDepth);
  }
  *target = *value;
  return absl::OkStatus();
}

}  // namespace

void MergePatch(Json& target, const Json& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = Json::object();
  for (const auto& [key, value] : patch.items()) {
    if (value.is_null()) {
      target.erase(key);
    } else {
      MergePatch(target[key], value);
    }
  }
}

absl::Status JsonPatch(Json& target, const Json& patch) {
  if (!patch.is_array()) {
    return InvalidArgumentError("a JSON patch is a list of operations");
  }
  if (patch.size() > kMaxPatchOperations) {
    return InvalidArgumentError("the patch has {} operations, {} at most",
                                patch.size(), kMaxPatchOperations);
  }
  std::size_t copied = 0;
  for (const Json& operation : patch) {
    DEVMGR_RETURN_IF_ERROR(Apply(target, operation, copied));
  }
  return absl::OkStatus();
}

absl::StatusOr<Json> ParseForeignJson(std::string_view text) {
  if (HasNul(text)) return InvalidArgumentError("the JSON has a NUL byte");
  if (IsJsonTooDeep(text)) {
    return InvalidArgumentError("the JSON has more than {} levels",
                                kMaxJsonDepth);
  }
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) {
    return InvalidArgumentError("the body is no JSON");
  }
  return value;
}

}  // namespace devmgr::apistore
