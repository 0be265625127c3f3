// SPDX-License-Identifier: Apache-2.0
#include "devmgrd/control_users.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/types.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "devmgrd/config_values.h"

namespace devmgrd {
namespace {

/// Nothing: the text is no number.
std::optional<unsigned> NumberOf(const std::string& text) {
  unsigned number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

absl::StatusOr<unsigned> FindUser(const std::string& user) {
  if (const auto number = NumberOf(user)) {
    // The kernel takes the last one for none.
    if (*number != static_cast<uid_t>(-1)) return *number;
    return Invalid("'{}' is no UID", user);
  }
  std::vector<char> buffer(1 << 14);
  passwd entry{};
  passwd* found = nullptr;
  const int error =
      getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr) return found->pw_uid;
  return Invalid(
      "'{}' is neither a UID nor the name of a user of this machine{}", user,
      error == 0 ? "" : fmt::format(" (error {})", error));
}

}  // namespace

absl::StatusOr<std::vector<unsigned>> FindUsers(
    const std::vector<std::string>& users) {
  std::vector<unsigned> uids;
  for (const std::string& user : users) {
    const auto uid = FindUser(user);
    if (!uid.ok()) return uid.status();
    uids.push_back(*uid);
  }
  return uids;
}

}  // namespace devmgrd
