// SPDX-License-Identifier: Apache-2.0
#include "cdi/spec.h"

#include <set>

#include "api/parser.h"
#include "api/quote.h"
#include "api/value.h"
#include "cdi/qualified_name.h"
#include "common/status.h"

namespace devmgr::cdi {
namespace {

using api::Quoted;
using api::Value;

/// The text of a member; scalars of any kind are text, as Go's reader has it.
absl::StatusOr<std::string> TextOf(const Value& map, std::string_view member) {
  const Value* value = map.Find(member);
  if (value == nullptr || value->kind == Value::Kind::kNull) {
    return InvalidArgumentError("line {}: '{}' is missing", map.line, member);
  }
  if (value->kind == Value::Kind::kList || value->kind == Value::Kind::kMap) {
    return InvalidArgumentError("line {}: '{}' must be a text", value->line,
                                member);
  }
  if (value->text.empty()) {
    return InvalidArgumentError("line {}: '{}' is empty", value->line, member);
  }
  return value->text;
}

absl::StatusOr<std::string> DeviceName(const std::string& kind,
                                       const Value& device) {
  if (device.kind != Value::Kind::kMap) {
    return InvalidArgumentError("line {}: a device must be an object",
                                device.line);
  }
  DEVMGR_ASSIGN_OR_RETURN(std::string name, TextOf(device, "name"));
  DEVMGR_RETURN_IF_ERROR(WithContext(CheckQualifiedName(kind + "=" + name),
                                     "line {}", device.line));
  return name;
}

}  // namespace

absl::StatusOr<Spec> ParseSpec(std::string_view text) {
  const api::ParsedText parsed = api::ParseText(text, /*json_only=*/false);
  if (!parsed.error.empty()) {
    return InvalidArgumentError("line {}: {}", parsed.error_line, parsed.error);
  }
  if (parsed.documents.empty()) return InvalidArgumentError("no spec in it");
  const Value& root = *parsed.documents.front();
  if (root.kind != Value::Kind::kMap) {
    return InvalidArgumentError("line {}: a spec must be an object", root.line);
  }
  Spec spec;
  DEVMGR_RETURN_IF_ERROR(TextOf(root, "cdiVersion").status());
  DEVMGR_ASSIGN_OR_RETURN(spec.kind, TextOf(root, "kind"));
  const Value* devices = root.Find("devices");
  if (devices == nullptr || devices->kind != Value::Kind::kList ||
      devices->items.empty()) {
    return InvalidArgumentError("'devices' must be a list of one or more");
  }
  std::set<std::string> names;
  for (const api::ValuePtr& device : devices->items) {
    DEVMGR_ASSIGN_OR_RETURN(std::string name, DeviceName(spec.kind, *device));
    if (!names.insert(name).second) {
      return InvalidArgumentError("line {}: a second device {}", device->line,
                                  Quoted(name));
    }
    spec.devices.push_back(std::move(name));
  }
  return spec;
}

}  // namespace devmgr::cdi
