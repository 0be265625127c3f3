// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/kubelet/dra_state_file.h"

#include "checkpoint/kubelet/json_field.h"

namespace devmgr::kubelet_checkpoint {
namespace {

absl::StatusOr<DraStateFile> DecodeState(std::string_view bytes) {
  DEVMGR_ASSIGN_OR_RETURN(const api::ValuePtr file, ParseObject(bytes));
  const JsonField root(file.get(), "");
  DEVMGR_ASSIGN_OR_RETURN(const JsonField data, root.Member("Data"));
  if (!data.IsAbsent()) {
    DEVMGR_ASSIGN_OR_RETURN(DraCheckpoint checkpoint, ReadDraCheckpoint(root));
    return checkpoint;
  }
  DEVMGR_ASSIGN_OR_RETURN(const JsonField entries, root.Member("entries"));
  if (entries.IsAbsent()) {
    return DataLossError(
        "neither 'Data', which kubelets since 1.32 write, nor 'entries', which "
        "those before it did");
  }
  DEVMGR_ASSIGN_OR_RETURN(OldDraCheckpoint checkpoint,
                          ReadOldDraCheckpoint(root));
  return checkpoint;
}

}  // namespace

absl::StatusOr<DraStateFile> DecodeDraStateFile(std::string_view bytes) {
  auto state = DecodeState(bytes);
  if (state.ok()) return state;
  return WithContext(state.status(), "{}", kDraStateName);
}

}  // namespace devmgr::kubelet_checkpoint
