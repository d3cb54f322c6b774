// RUN: opt --pass-pipeline='annotate,simplify,fuse,plan,build-kernels' --split-input-file %s | filecheck %s

// A loop goes through its range of elements in vectors, of which the last one is masked.
func.func @main(%x: tensor<?xf32, [@s]>, %y: tensor<?xf32, [@s]>) -> tensor<?xf32, [@s]> {
  %0 = stablehlo.multiply %x, %y : tensor<?xf32, [@s]>
  return %0 : tensor<?xf32, [@s]>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: call @loop_0({{.*}}disc.kernel = #disc.kernel<{{.*}}use = {grain = {{[0-9]+}} : i64, items = @s, kernel = @loop_multiply, sizes = [@s]}}>
// CHECK-LABEL: module @kernels
// CHECK-NEXT: func.func private @loop_multiply(%[[X:.*]]: memref<?xf32>, %[[Y:.*]]: memref<?xf32>, %[[Z:.*]]: memref<?xf32>, %[[BEGIN:.*]]: index, %[[END:.*]]: index, %{{.*}}: index)
// CHECK: scf.for %[[I:.*]] = %[[BEGIN]] to %{{.*}} step
// CHECK-NEXT: %[[A:.*]] = vector.load %[[X]][%[[I]]] : memref<?xf32>, vector<[[LANES:[0-9]+]]xf32>
// CHECK-NEXT: %[[B:.*]] = vector.load %[[Y]][%[[I]]] : memref<?xf32>, vector<[[LANES]]xf32>
// CHECK-NEXT: %[[C:.*]] = arith.mulf %[[A]], %[[B]] : vector<[[LANES]]xf32>
// CHECK-NEXT: vector.store %[[C]], %[[Z]][%[[I]]]
// CHECK: %[[MASK:.*]] = vector.create_mask {{.*}} : vector<[[LANES]]xi1>
// CHECK: vector.maskedload %[[X]][{{.*}}], %[[MASK]],
// CHECK: vector.maskedstore %[[Z]][{{.*}}], %[[MASK]],

// -----

// A row kernel goes through the rows, and through each of them in vectors, which it adds up at the end.
func.func @main(%x: tensor<?x?xf32, [@b, @s]>) -> tensor<?xf32, [@b]> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<?x?xf32, [@b, @s]>, tensor<f32>) -> tensor<?xf32, [@b]>
  return %0 : tensor<?xf32, [@b]>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: call @row_reduce_0({{.*}}use = {grain = {{.*}}, items = @b, kernel = @row_reduce, sizes = [@b, @s]}}>
// CHECK-LABEL: module @kernels
// CHECK-NEXT: func.func private @row_reduce(%[[X:.*]]: memref<?x?xf32>, %[[Y:.*]]: memref<?xf32>, %[[BEGIN:.*]]: index, %[[END:.*]]: index, %[[B:.*]]: index, %[[S:.*]]: index)
// CHECK: scf.for %[[I:.*]] = %[[BEGIN]] to %[[END]] step
// CHECK: scf.for %[[J:.*]] =
// CHECK: vector.load %[[X]][%[[I]], %{{.*}}] : memref<?x?xf32>, vector<[[LANES:[0-9]+]]xf32>
// CHECK-NEXT: arith.addf {{.*}} : vector<[[LANES]]xf32>
// CHECK: %[[SUM:.*]] = arith.addf {{.*}} : f32
// CHECK-NEXT: memref.store %[[SUM]], %[[Y]][%[[I]]]

// -----

// A matrix product has no kernel of its own: micro-kernels of the runtime are for all of them.
func.func @main(%x: tensor<?x8xf32, [@s, 8]>, %w: tensor<8x8xf32>) -> tensor<?x8xf32, [@s, 8]> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x8xf32, [@s, 8]>, tensor<8x8xf32>) -> tensor<?x8xf32, [@s, 8]>
  return %0 : tensor<?x8xf32, [@s, 8]>
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: call @dot_0(%arg0, %arg1) {disc.buffers = [#disc.buffer<"result", {index = 0 : i64}>]} :
// CHECK-LABEL: module @kernels
// CHECK-NEXT: }
