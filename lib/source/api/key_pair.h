// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "source/api/credentials.h"

namespace devmgr::apiserver {

/// What the first certificate in `pem` says of itself. No message has a part of
/// either text.
///   InvalidArgument  one of them cannot be parsed, or the key is the key of
///                    another certificate
absl::StatusOr<CertificateInfo> CheckKeyPair(const std::string& pem,
                                             const std::string& key_pem);

}  // namespace devmgr::apiserver
