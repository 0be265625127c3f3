// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <string>

#include "devmgrd/metrics.h"
#include "support/fake_device_manager.h"

namespace devmgrd {

class MetricsPageTest : public ::testing::Test {
 protected:
  MetricsPageTest() { metrics_.Attach(manager_); }
  std::string Page() {
    return prometheus::TextSerializer().Serialize(metrics_.Collect());
  }

  devmgr::FakeDeviceManager manager_;
  Metrics metrics_;
};

}  // namespace devmgrd
