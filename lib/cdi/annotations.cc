// SPDX-License-Identifier: Apache-2.0
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <devmgr/cdi.h>

#include <algorithm>
#include <set>

#include "api/quote.h"
#include "cdi/qualified_name.h"
#include "common/status.h"

namespace devmgr {
namespace {

using api::Quoted;

/// Behind the prefix.
constexpr std::size_t kMaxKeyCharacters = 63;

bool IsAlnum(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         (c >= '0' && c <= '9');
}

bool IsKeyCharacter(char c) {
  return IsAlnum(c) || c == '_' || c == '-' || c == '.';
}

absl::Status CheckKey(const std::string& key) {
  if (key.size() > kMaxKeyCharacters) {
    return InvalidArgumentError(
        "CDI annotation {} is too long: {} characters, "
        "at most {} may follow '{}'",
        Quoted(key), key.size(), kMaxKeyCharacters, kCdiAnnotationPrefix);
  }
  if (!IsAlnum(key.front()) || !IsAlnum(key.back())) {
    return InvalidArgumentError(
        "CDI annotation {} must begin and end with a letter or digit",
        Quoted(key));
  }
  if (!std::all_of(key.begin(), key.end(), IsKeyCharacter)) {
    return InvalidArgumentError(
        "CDI annotation {} may hold only letters, digits, '_', '-' and '.'",
        Quoted(key));
  }
  return absl::OkStatus();
}

std::string WithoutSlashes(std::string_view id) {
  std::string text(id);
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

}  // namespace

absl::StatusOr<NamedValue> MakeCdiAnnotation(
    std::string_view plugin, std::string_view device_id,
    const std::vector<std::string>& names) {
  if (plugin.empty() || device_id.empty()) {
    return InvalidArgumentError(
        "CDI annotation of plugin {} and device {}: "
        "neither may be empty",
        Quoted(plugin), Quoted(device_id));
  }
  const std::string key = std::string(plugin) + "_" + WithoutSlashes(device_id);
  DEVMGR_RETURN_IF_ERROR(CheckKey(key));
  for (const std::string& name : names) {
    DEVMGR_RETURN_IF_ERROR(WithContext(cdi::CheckQualifiedName(name),
                                       "CDI annotation {}", Quoted(key)));
  }
  return NamedValue{std::string(kCdiAnnotationPrefix) + key,
                    absl::StrJoin(names, ",")};
}

absl::Status AddCdiAnnotation(std::string_view plugin,
                              std::string_view device_id,
                              const std::vector<std::string>& names,
                              std::map<std::string, std::string>& annotations) {
  DEVMGR_ASSIGN_OR_RETURN(NamedValue annotation,
                          MakeCdiAnnotation(plugin, device_id, names));
  const bool is_new =
      annotations.try_emplace(annotation.name, std::move(annotation.value))
          .second;
  if (is_new) return absl::OkStatus();
  return FailedPreconditionError("annotation '{}' is there already",
                                 annotation.name);
}

absl::StatusOr<std::vector<std::string>> ParseCdiAnnotations(
    const std::map<std::string, std::string>& annotations) {
  std::vector<std::string> names;
  for (auto at = annotations.lower_bound(std::string(kCdiAnnotationPrefix));
       at != annotations.end() && at->first.starts_with(kCdiAnnotationPrefix);
       ++at) {
    for (std::string& name :
         std::vector<std::string>(absl::StrSplit(at->second, ','))) {
      DEVMGR_RETURN_IF_ERROR(WithContext(cdi::CheckQualifiedName(name),
                                         "annotation {}", Quoted(at->first)));
      names.push_back(std::move(name));
    }
  }
  return names;
}

absl::StatusOr<std::vector<std::string>> CdiNamesOf(
    const std::vector<std::string>& field,
    const std::map<std::string, std::string>& annotations) {
  const auto annotated = ParseCdiAnnotations(annotations);
  if (!annotated.ok()) {
    return FailedPreconditionError("{}", MessageOf(annotated.status()));
  }
  std::vector<std::string> names;
  std::set<std::string_view> seen;
  for (const std::vector<std::string>* from : {&field, &*annotated}) {
    for (const std::string& name : *from) {
      if (seen.insert(name).second) names.push_back(name);
    }
  }
  return names;
}

absl::StatusOr<std::vector<std::string>> CdiNamesOf(
    const ContainerDevices& devices) {
  std::vector<std::string> field;
  for (const CdiDevice& device : devices.cdi_devices) {
    field.push_back(device.name);
  }
  std::map<std::string, std::string> annotations;
  for (const NamedValue& annotation : devices.annotations) {
    annotations.emplace(annotation.name, annotation.value);
  }
  return CdiNamesOf(field, annotations);
}

std::string CdiSpecFileName(std::string_view kind, std::string_view id) {
  std::string name(kind);
  std::replace(name.begin(), name.end(), '/', '-');
  return id.empty() ? name : name + "_" + WithoutSlashes(id);
}

}  // namespace devmgr
