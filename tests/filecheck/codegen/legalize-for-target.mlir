// RUN: opt --pass-pipeline='annotate,simplify,fuse,plan,kernels,host,lower-host,legalize-for-target' --split-input-file %s | filecheck %s

// Masked loads of two registers: those of 32 lanes are for a processor with registers of masks, and stay as they are.
func.func @main(%x: tensor<?xf32, [@s]>, %y: tensor<?xf32, [@s]>) -> tensor<?xf32, [@s]> {
  %0 = stablehlo.multiply %x, %y : tensor<?xf32, [@s]>
  return %0 : tensor<?xf32, [@s]>
}
// CHECK-LABEL: func.func private @loop_multiply(
// CHECK: %[[MASK:.*]] = vector.create_mask %{{.*}} : vector<[[LANES:[0-9]+]]xi1>
// CHECK-NOT: vector.insert_strided_slice {{.*}} into vector<32xf32>
// CHECK: vector.maskedload %arg0
// CHECK-NOT: vector.insert_strided_slice {{.*}} into vector<32xf32>
// CHECK: vector.maskedload %arg1
// CHECK-NOT: vector.insert_strided_slice {{.*}} into vector<32xf32>
// CHECK: arith.mulf {{.*}} : vector<[[LANES]]xf32>
// CHECK: vector.maskedstore %arg2[{{.*}}], %[[MASK]],

// -----

// Masked loads that are no wider than a register stay on all processors.
func.func @main(%x: tensor<?xi8, [@s]>, %y: tensor<?xi8, [@s]>) -> tensor<?xi8, [@s]> {
  %0 = stablehlo.multiply %x, %y : tensor<?xi8, [@s]>
  return %0 : tensor<?xi8, [@s]>
}
// CHECK-LABEL: func.func private @loop_multiply(
// CHECK: %[[MASK:.*]] = vector.create_mask %{{.*}} : vector<[[LANES:[0-9]+]]xi1>
// CHECK: %[[X:.*]] = vector.maskedload %arg0[{{.*}}], %[[MASK]], {{.*}} into vector<[[LANES]]xi8>
// CHECK: %[[Y:.*]] = vector.maskedload %arg1[{{.*}}], %[[MASK]], {{.*}} into vector<[[LANES]]xi8>
// CHECK-NEXT: arith.muli %[[X]], %[[Y]] : vector<[[LANES]]xi8>
// CHECK-NOT: strided_slice
// CHECK: llvm.func @loop_multiply_entry
