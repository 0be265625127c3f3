// SPDX-License-Identifier: Apache-2.0
//
// Names of claims that are made here. Each is a base that says what it is for,
// and a suffix that keeps it from being the name of another one.
#pragma once

#include <devmgr/objects.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace devmgr::control {

/// Five characters, as API servers append them: no vowels and no digits that
/// look like letters. The same for the same number; numbers in a row have
/// different ones, for the first 14 million.
std::string NameSuffix(std::uint64_t number);

/// `<pod>-<part>`, each cut in proportion to its length so that there are 57
/// characters at most, and a hyphen and a suffix make a label's 63. It is a
/// valid name by itself.
std::string GeneratedBase(std::string_view pod, std::string_view part);

/// `<base>-<suffix>`.
std::string GeneratedName(std::string_view base, std::string_view suffix);

/// The name of a pod's special claim: that of the scheduler,
/// `<pod>-extended-resources-<suffix>`, where that is not too long.
std::string SpecialClaimName(const Pod& pod, std::string_view suffix);

}  // namespace devmgr::control
