// SPDX-License-Identifier: Apache-2.0
//
// Name rules of the Kubernetes API. Each check returns an empty string when
// the name is fine, else a sentence that quotes it and tells the rule.
#pragma once

#include <string>
#include <string_view>

namespace devmgr::api {

inline constexpr std::string_view kImplicitResourcePrefix =
    "deviceclass.resource.kubernetes.io/";

/// UIDs become parts of keys and of file names. An empty one passes.
std::string CheckUid(std::string_view uid);
/// DNS-1123 label: up to 63 of a-z, 0-9 and `-`.
std::string CheckLabel(std::string_view name);
/// DNS-1123 subdomain: labels joined by dots, up to 253 characters.
std::string CheckSubdomain(std::string_view name);
/// Qualified name: optional subdomain and `/`, then up to 63 of letters,
/// digits, `-`, `_`, `.`, beginning and ending alphanumeric.
std::string CheckQualifiedName(std::string_view name);
/// A label's value: up to 63 of letters, digits, `-`, `_`, `.`, beginning and
/// ending alphanumeric; or nothing.
std::string CheckLabelValue(std::string_view value);
/// A UUID of 36 characters in lower case.
std::string CheckUuid(std::string_view text);
/// Driver name: a lower-case subdomain of up to 63 characters. The texts
/// contain upstream's `Required value`, `Too long`, `invalid DRA driver name`.
std::string CheckDriverName(std::string_view name);
/// Pool name: subdomains joined by `/`, up to 253 characters in all.
std::string CheckPoolName(std::string_view name);

/// True for domain-qualified names outside `kubernetes.io` that do not begin
/// with `requests.` and are valid qualified names.
bool IsExtendedResourceName(std::string_view name);
/// Extended resource names, and implicit names of device classes: what a
/// special claim may serve.
bool CanBeDraExtendedResource(std::string_view name);

/// `gpu` for `gpu/large`: the request without its alternative.
std::string_view BaseRequestName(std::string_view request);

}  // namespace devmgr::api
