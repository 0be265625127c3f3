// SPDX-License-Identifier: Apache-2.0
//
// Between v1 and v1beta1 of resource.k8s.io. v1beta2 is v1 on the wire.
#pragma once

#include "apistore/answer.h"

namespace devmgr::apistore {

// A device of v1beta1 has its content in `basic`.
void SliceFromBeta1(Json& slice);
void SliceToBeta1(Json& slice);

// A request of v1beta1 for exactly some device is flat.
void ClaimFromBeta1(Json& claim);
void ClaimToBeta1(Json& claim);

}  // namespace devmgr::apistore
