// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A custom call: (f32[n, k]) -> (f32[n, k] times the attribute "factor", f32[n] of the rows' sums); refuses n = 13.
#include "shlo_disc_custom_call.h"

#include <string.h>

const char *scale_rows(const ShloDiscCall *call) {
  const ShloDiscBuffer *x = &call->operands[0];
  const float *elements = (const float *)x->data;
  float factor = 0;
  for (int64_t i = 0; i < call->attribute_count; ++i)
    if (strcmp(call->attributes[i].name, "factor") == 0)
      factor = *(const float *)call->attributes[i].data;
  if (x->dims[0] == 13)
    return "no thirteen rows";
  float *scaled = (float *)call->results[0].data, *sums = (float *)call->results[1].data;
  for (int64_t i = 0; i < x->dims[0]; ++i) {
    sums[i] = 0;
    for (int64_t j = 0; j < x->dims[1]; ++j) {
      scaled[i * x->dims[1] + j] = elements[i * x->dims[1] + j] * factor;
      sums[i] += elements[i * x->dims[1] + j];
    }
  }
  return 0;
}
