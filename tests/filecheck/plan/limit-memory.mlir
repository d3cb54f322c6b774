// RUN: opt --pass-pipeline='annotate,simplify,fuse,limit-memory{memory-limit=1000000}' --split-input-file %s | filecheck %s

// The first product is read again behind three others. The second variant runs its call once more there.
func.func @main(%x: tensor<?x64xf32, [@s, 64]>, %w: tensor<64x64xf32>, %v: tensor<64x256xf32>, %u: tensor<256x64xf32>) -> tensor<?x64xf32, [@s, 64]> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x64xf32, [@s, 64]>, tensor<64x64xf32>) -> tensor<?x64xf32, [@s, 64]>
  %1 = stablehlo.dot_general %0, %v, contracting_dims = [1] x [0] : (tensor<?x64xf32, [@s, 64]>, tensor<64x256xf32>) -> tensor<?x256xf32, [@s, 256]>
  %2 = stablehlo.dot_general %1, %u, contracting_dims = [1] x [0] : (tensor<?x256xf32, [@s, 256]>, tensor<256x64xf32>) -> tensor<?x64xf32, [@s, 64]>
  %3 = stablehlo.dot_general %2, %0, contracting_dims = [0] x [0] : (tensor<?x64xf32, [@s, 64]>, tensor<?x64xf32, [@s, 64]>) -> tensor<64x64xf32>
  %4 = stablehlo.dot_general %x, %3, contracting_dims = [1] x [0] : (tensor<?x64xf32, [@s, 64]>, tensor<64x64xf32>) -> tensor<?x64xf32, [@s, 64]>
  return %4 : tensor<?x64xf32, [@s, 64]>
}
// CHECK: module attributes {{.*}}disc.memory_limit = 1000000 : i64
// CHECK-SAME: disc.variant = 0 : i64
// CHECK-LABEL: func.func @main
// CHECK: "stablehlo.case"
// CHECK-NEXT: %[[A:.*]] = func.call @dot_0
// CHECK-NEXT: func.call @dot_1(%[[A]], %{{.*}})
// CHECK-NEXT: %[[B:.*]] = func.call @dot_2
// CHECK-NEXT: func.call @dot_3(%[[B]], %[[A]])
// CHECK-NEXT: func.call @dot_4
// CHECK-NEXT: stablehlo.return
// CHECK-NEXT: }, {
// CHECK-NEXT: %[[A:.*]] = func.call @dot_0
// CHECK-NEXT: func.call @dot_1(%[[A]], %{{.*}})
// CHECK-NEXT: %[[B:.*]] = func.call @dot_2
// CHECK-NEXT: %[[C:.*]] = func.call @dot_0
// CHECK-NEXT: func.call @dot_3(%[[B]], %[[C]])
// CHECK-NEXT: func.call @dot_4
// CHECK-NEXT: stablehlo.return
