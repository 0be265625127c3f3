// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/kubelet/dra_checkpoint.h"

#include <utility>

#include "checkpoint/kubelet/checksum.h"
#include "checkpoint/kubelet/dra_claim.h"
#include "checkpoint/kubelet/go_writer.h"

namespace devmgr::kubelet_checkpoint {
namespace {

/// The text that becomes `Data`, and that the checksum is taken over.
absl::StatusOr<std::string> InnerText(const DraCheckpoint& checkpoint) {
  GoJsonWriter json;
  json.Raw("{");
  if (!checkpoint.kind.empty()) {
    json.Raw(R"("kind":)");
    json.String(checkpoint.kind);
    json.Raw(",");
  }
  if (!checkpoint.api_version.empty()) {
    json.Raw(R"("apiVersion":)");
    json.String(checkpoint.api_version);
    json.Raw(",");
  }
  json.Raw(R"("ClaimInfoStateList":)");
  json.Sequence("[]", checkpoint.claims, [&json](const DraClaim& claim) {
    json.Raw("{");
    WriteClaimIdentity(claim, json);
    json.Raw(",");
    WriteDriverStates(claim, /*is_v1=*/true, json);
    json.Raw("}");
  });
  json.Raw("}");
  return std::move(json).Take(kDraStateName);
}

absl::StatusOr<DraCheckpoint> ReadInner(const JsonField& inner) {
  DraCheckpoint checkpoint;
  DEVMGR_ASSIGN_OR_RETURN(const JsonField kind, inner.Member("kind"));
  DEVMGR_ASSIGN_OR_RETURN(checkpoint.kind, kind.Text());
  DEVMGR_ASSIGN_OR_RETURN(const JsonField version, inner.Member("apiVersion"));
  DEVMGR_ASSIGN_OR_RETURN(checkpoint.api_version, version.Text());
  DEVMGR_ASSIGN_OR_RETURN(const JsonField claims,
                          inner.Member("ClaimInfoStateList"));
  // The kubelet would go on without any claim, and unprepare none.
  if (claims.IsAbsent()) return claims.Error("missing");
  DEVMGR_ASSIGN_OR_RETURN(checkpoint.claims, claims.List(ReadDraClaim));
  return checkpoint;
}

}  // namespace

absl::StatusOr<std::string> EncodeDraCheckpoint(
    const DraCheckpoint& checkpoint) {
  DEVMGR_ASSIGN_OR_RETURN(const std::string inner, InnerText(checkpoint));
  GoJsonWriter json;
  json.Raw(R"({"Data":)");
  json.String(inner);
  json.Raw(fmt::format(R"(,"Checksum":{}}})", Crc32(inner)));
  return std::move(json).Take(kDraStateName);
}

absl::StatusOr<DraCheckpoint> ReadDraCheckpoint(const JsonField& file) {
  DEVMGR_ASSIGN_OR_RETURN(const JsonField data, file.Member("Data"));
  DEVMGR_ASSIGN_OR_RETURN(const std::string text, data.Text());
  DEVMGR_ASSIGN_OR_RETURN(const JsonField field, file.Member("Checksum"));
  DEVMGR_ASSIGN_OR_RETURN(const std::uint64_t checksum, field.Number());
  if (const std::uint32_t computed = Crc32(text); checksum != computed) {
    return field.Corrupted(checksum, computed);
  }
  const auto inner = ParseObject(text);
  if (!inner.ok()) return data.Error(MessageOf(inner.status()));
  return ReadInner(JsonField(inner->get(), data.path()));
}

}  // namespace devmgr::kubelet_checkpoint
