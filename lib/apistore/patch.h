// SPDX-License-Identifier: Apache-2.0
//
// Patches that need to know nothing about types. All take bodies of others:
// they fail, and never throw.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <string_view>

#include "apistore/answer.h"

namespace devmgr::apistore {

/// RFC 7386: objects are merged, null deletes, all else is replaced.
void MergePatch(Json& target, const Json& patch);

/// RFC 6902. InvalidArgument when `patch` is no list of operations;
/// FailedPrecondition when one cannot be applied, or its `test` fails, and
/// `target` is then partly patched. What `copy` adds is bounded, and so is the
/// depth.
absl::Status JsonPatch(Json& target, const Json& patch);

/// How many operations one JSON patch may have.
inline constexpr std::size_t kMaxPatchOperations = 10000;
/// How many bytes of JSON its `copy` operations may add.
inline constexpr std::size_t kMaxCopiedBytes = 3u << 20;

/// JSON of others as a value. InvalidArgument for what is none, or too deep.
absl::StatusOr<Json> ParseForeignJson(std::string_view text);

}  // namespace devmgr::apistore
