// RUN: opt --stage simplify --split-input-file %s | filecheck %s

// Inference: the values less their mean, over the deviation, by the scale and plus the offset of each feature.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf32, [@b, @s]>, %[[B:\w+]]: tensor<?xf32, [@s]>,
// CHECK-SAME: %[[C:\w+]]: tensor<?xf32, [@s]>, %[[D:\w+]]: tensor<?xf32, [@s]>,
// CHECK-SAME: %[[E:\w+]]: tensor<?xf32, [@s]>) -> tensor<?x?xf32, [@b, @s]> {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<1.000000e-03> : tensor<f32>
// CHECK-NOT: batch_norm
// CHECK: %[[SHAPE:\w+]] = "disc.shape"() {dims = [@b, @s]} : () -> tensor<2xi64>
// CHECK-NEXT: %[[BROADCAST:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[D]], %[[SHAPE]], dims = [1]
// CHECK-SAME: : (tensor<?xf32, [@s]>, tensor<2xi64>) -> tensor<?x?xf32, [@b, @s]>
// CHECK-NEXT: %[[SUBTRACT:\w+]] = stablehlo.subtract %[[A]], %[[BROADCAST]] : tensor<?x?xf32, [@b, @s]>
// CHECK-NEXT: %[[SHAPE2:\w+]] = "disc.shape"() {dims = [@s]} : () -> tensor<1xi64>
// CHECK-NEXT: %[[BROADCAST2:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT]], %[[SHAPE2]], dims = []
// CHECK-SAME: : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32, [@s]>
// CHECK-NEXT: %[[ADD:\w+]] = stablehlo.add %[[E]], %[[BROADCAST2]] : tensor<?xf32, [@s]>
// CHECK-NEXT: %[[SQRT:\w+]] = stablehlo.sqrt %[[ADD]] : tensor<?xf32, [@s]>
// CHECK-NEXT: %[[BROADCAST3:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[SQRT]], %[[SHAPE]], dims = [1]
// CHECK-SAME: : (tensor<?xf32, [@s]>, tensor<2xi64>) -> tensor<?x?xf32, [@b, @s]>
// CHECK-NEXT: %[[DIVIDE:\w+]] = stablehlo.divide %[[SUBTRACT]], %[[BROADCAST3]] : tensor<?x?xf32, [@b, @s]>
// CHECK-NEXT: %[[BROADCAST4:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[B]], %[[SHAPE]], dims = [1]
// CHECK-SAME: : (tensor<?xf32, [@s]>, tensor<2xi64>) -> tensor<?x?xf32, [@b, @s]>
// CHECK-NEXT: %[[MULTIPLY:\w+]] = stablehlo.multiply %[[DIVIDE]], %[[BROADCAST4]] : tensor<?x?xf32, [@b, @s]>
// CHECK-NEXT: %[[BROADCAST5:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[C]], %[[SHAPE]], dims = [1]
// CHECK-SAME: : (tensor<?xf32, [@s]>, tensor<2xi64>) -> tensor<?x?xf32, [@b, @s]>
// CHECK-NEXT: %[[ADD2:\w+]] = stablehlo.add %[[MULTIPLY]], %[[BROADCAST5]] : tensor<?x?xf32, [@b, @s]>
// CHECK-NEXT: return %[[ADD2]] : tensor<?x?xf32, [@b, @s]>
func.func @main(%x: tensor<?x?xf32, [@b, @s]>, %scale: tensor<?xf32, [@s]>, %offset: tensor<?xf32, [@s]>,
    %mean: tensor<?xf32, [@s]>, %variance: tensor<?xf32, [@s]>) -> tensor<?x?xf32> {
  %0 = "stablehlo.batch_norm_inference"(%x, %scale, %offset, %mean, %variance)
      <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}>
      : (tensor<?x?xf32, [@b, @s]>, tensor<?xf32, [@s]>, tensor<?xf32, [@s]>, tensor<?xf32, [@s]>,
      tensor<?xf32, [@s]>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// Training: the mean and the variance of each feature are computed over the other axis, and returned.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf32, [@b, @s]>, %[[B:\w+]]: tensor<?xf32, [@b]>,
// CHECK-SAME: %[[C:\w+]]: tensor<?xf32, [@b]>) -> (tensor<?x?xf32, [@b, @s]>, tensor<?xf32, [@b]>, tensor<?xf32, [@b]>) {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<1.000000e-03> : tensor<f32>
// CHECK-DAG: %[[CONSTANT2:\w+]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NOT: batch_norm
// CHECK: %[[SHAPE:\w+]] = "disc.shape"() {dims = [@s]} : () -> tensor<i64>
// CHECK-NEXT: %[[CONVERT:\w+]] = stablehlo.convert %[[SHAPE]] : (tensor<i64>) -> tensor<f32>
// CHECK-NEXT: %[[SHAPE2:\w+]] = "disc.shape"() {dims = [@b]} : () -> tensor<1xi64>
// CHECK-NEXT: %[[BROADCAST:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONVERT]], %[[SHAPE2]], dims = []
// CHECK-SAME: : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32, [@b]>
// CHECK-NEXT: %[[REDUCE:\w+]] = stablehlo.reduce(%[[A]] init: %[[CONSTANT2]]) applies stablehlo.add
// CHECK-SAME: across dimensions = [1] : (tensor<?x?xf32, [@b, @s]>, tensor<f32>) -> tensor<?xf32, [@b]>
// CHECK-NEXT: %[[DIVIDE:\w+]] = stablehlo.divide %[[REDUCE]], %[[BROADCAST]] : tensor<?xf32, [@b]>
// CHECK-NEXT: %[[SHAPE3:\w+]] = "disc.shape"() {dims = [@b, @s]} : () -> tensor<2xi64>
// CHECK-NEXT: %[[BROADCAST2:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[DIVIDE]], %[[SHAPE3]], dims = [0]
// CHECK-SAME: : (tensor<?xf32, [@b]>, tensor<2xi64>) -> tensor<?x?xf32, [@b, @s]>
// CHECK-NEXT: %[[SUBTRACT:\w+]] = stablehlo.subtract %[[A]], %[[BROADCAST2]] : tensor<?x?xf32, [@b, @s]>
// CHECK-NEXT: %[[MULTIPLY:\w+]] = stablehlo.multiply %[[SUBTRACT]], %[[SUBTRACT]] : tensor<?x?xf32, [@b, @s]>
// CHECK-NEXT: %[[REDUCE2:\w+]] = stablehlo.reduce(%[[MULTIPLY]] init: %[[CONSTANT2]]) applies stablehlo.add
// CHECK-SAME: across dimensions = [1] : (tensor<?x?xf32, [@b, @s]>, tensor<f32>) -> tensor<?xf32, [@b]>
// CHECK-NEXT: %[[DIVIDE2:\w+]] = stablehlo.divide %[[REDUCE2]], %[[BROADCAST]] : tensor<?xf32, [@b]>
// CHECK-NEXT: %[[BROADCAST3:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT]], %[[SHAPE2]], dims = []
// CHECK-SAME: : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32, [@b]>
// CHECK-NEXT: %[[ADD:\w+]] = stablehlo.add %[[DIVIDE2]], %[[BROADCAST3]] : tensor<?xf32, [@b]>
// CHECK-NEXT: %[[SQRT:\w+]] = stablehlo.sqrt %[[ADD]] : tensor<?xf32, [@b]>
// CHECK-NEXT: %[[BROADCAST4:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[SQRT]], %[[SHAPE3]], dims = [0]
// CHECK-SAME: : (tensor<?xf32, [@b]>, tensor<2xi64>) -> tensor<?x?xf32, [@b, @s]>
// CHECK-NEXT: %[[DIVIDE3:\w+]] = stablehlo.divide %[[SUBTRACT]], %[[BROADCAST4]] : tensor<?x?xf32, [@b, @s]>
// CHECK-NEXT: %[[BROADCAST5:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[B]], %[[SHAPE3]], dims = [0]
// CHECK-SAME: : (tensor<?xf32, [@b]>, tensor<2xi64>) -> tensor<?x?xf32, [@b, @s]>
// CHECK-NEXT: %[[MULTIPLY2:\w+]] = stablehlo.multiply %[[DIVIDE3]], %[[BROADCAST5]] : tensor<?x?xf32, [@b, @s]>
// CHECK-NEXT: %[[BROADCAST6:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[C]], %[[SHAPE3]], dims = [0]
// CHECK-SAME: : (tensor<?xf32, [@b]>, tensor<2xi64>) -> tensor<?x?xf32, [@b, @s]>
// CHECK-NEXT: %[[ADD2:\w+]] = stablehlo.add %[[MULTIPLY2]], %[[BROADCAST6]] : tensor<?x?xf32, [@b, @s]>
// CHECK-NEXT: return %[[ADD2]], %[[DIVIDE]], %[[DIVIDE2]]
// CHECK-SAME: : tensor<?x?xf32, [@b, @s]>, tensor<?xf32, [@b]>, tensor<?xf32, [@b]>
func.func @main(%x: tensor<?x?xf32, [@b, @s]>, %scale: tensor<?xf32, [@b]>, %offset: tensor<?xf32, [@b]>)
    -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %0:3 = "stablehlo.batch_norm_training"(%x, %scale, %offset)
      <{epsilon = 1.0e-3 : f32, feature_index = 0 : i64}>
      : (tensor<?x?xf32, [@b, @s]>, tensor<?xf32, [@b]>, tensor<?xf32, [@b]>)
      -> (tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>)
  return %0#0, %0#1, %0#2 : tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
}

// -----

// The gradient divides by the number of elements of each feature.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:\w+]]: tensor<?x?xf64, [@b, @s]>, %[[B:\w+]]: tensor<?xf64, [@s]>,
// CHECK-SAME: %[[C:\w+]]: tensor<?xf64, [@s]>, %[[D:\w+]]: tensor<?xf64, [@s]>,
// CHECK-SAME: %[[E:\w+]]: tensor<?x?xf64, [@b, @s]>) -> (tensor<?x?xf64, [@b, @s]>, tensor<?xf64, [@s]>, tensor<?xf64, [@s]>) {
// CHECK-DAG: %[[CONSTANT:\w+]] = stablehlo.constant dense<0.000000e+00> : tensor<f64>
// CHECK-DAG: %[[CONSTANT2:\w+]] = stablehlo.constant dense<0.0010000000474974513> : tensor<f64>
// CHECK-NOT: batch_norm
// CHECK: %[[SHAPE:\w+]] = "disc.shape"() {dims = [@b, @s]} : () -> tensor<2xi64>
// CHECK-NEXT: %[[BROADCAST:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[C]], %[[SHAPE]], dims = [1]
// CHECK-SAME: : (tensor<?xf64, [@s]>, tensor<2xi64>) -> tensor<?x?xf64, [@b, @s]>
// CHECK-NEXT: %[[SUBTRACT:\w+]] = stablehlo.subtract %[[A]], %[[BROADCAST]] : tensor<?x?xf64, [@b, @s]>
// CHECK-NEXT: %[[SHAPE2:\w+]] = "disc.shape"() {dims = [@s]} : () -> tensor<1xi64>
// CHECK-NEXT: %[[BROADCAST2:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONSTANT2]], %[[SHAPE2]], dims = []
// CHECK-SAME: : (tensor<f64>, tensor<1xi64>) -> tensor<?xf64, [@s]>
// CHECK-NEXT: %[[ADD:\w+]] = stablehlo.add %[[D]], %[[BROADCAST2]] : tensor<?xf64, [@s]>
// CHECK-NEXT: %[[SQRT:\w+]] = stablehlo.sqrt %[[ADD]] : tensor<?xf64, [@s]>
// CHECK-NEXT: %[[BROADCAST3:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[SQRT]], %[[SHAPE]], dims = [1]
// CHECK-SAME: : (tensor<?xf64, [@s]>, tensor<2xi64>) -> tensor<?x?xf64, [@b, @s]>
// CHECK-NEXT: %[[DIVIDE:\w+]] = stablehlo.divide %[[SUBTRACT]], %[[BROADCAST3]] : tensor<?x?xf64, [@b, @s]>
// CHECK-NEXT: %[[SHAPE3:\w+]] = "disc.shape"() {dims = [@b]} : () -> tensor<i64>
// CHECK-NEXT: %[[CONVERT:\w+]] = stablehlo.convert %[[SHAPE3]] : (tensor<i64>) -> tensor<f64>
// CHECK-NEXT: %[[BROADCAST4:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[CONVERT]], %[[SHAPE]], dims = []
// CHECK-SAME: : (tensor<f64>, tensor<2xi64>) -> tensor<?x?xf64, [@b, @s]>
// CHECK-NEXT: %[[REDUCE:\w+]] = stablehlo.reduce(%[[E]] init: %[[CONSTANT]]) applies stablehlo.add
// CHECK-SAME: across dimensions = [0] : (tensor<?x?xf64, [@b, @s]>, tensor<f64>) -> tensor<?xf64, [@s]>
// CHECK-NEXT: %[[MULTIPLY:\w+]] = stablehlo.multiply %[[E]], %[[SUBTRACT]] : tensor<?x?xf64, [@b, @s]>
// CHECK-NEXT: %[[REDUCE2:\w+]] = stablehlo.reduce(%[[MULTIPLY]] init: %[[CONSTANT]]) applies stablehlo.add
// CHECK-SAME: across dimensions = [0] : (tensor<?x?xf64, [@b, @s]>, tensor<f64>) -> tensor<?xf64, [@s]>
// CHECK-NEXT: %[[DIVIDE2:\w+]] = stablehlo.divide %[[REDUCE2]], %[[ADD]] : tensor<?xf64, [@s]>
// CHECK-NEXT: %[[BROADCAST5:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[DIVIDE2]], %[[SHAPE]], dims = [1]
// CHECK-SAME: : (tensor<?xf64, [@s]>, tensor<2xi64>) -> tensor<?x?xf64, [@b, @s]>
// CHECK-NEXT: %[[MULTIPLY2:\w+]] = stablehlo.multiply %[[E]], %[[BROADCAST4]] : tensor<?x?xf64, [@b, @s]>
// CHECK-NEXT: %[[BROADCAST6:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[REDUCE]], %[[SHAPE]], dims = [1]
// CHECK-SAME: : (tensor<?xf64, [@s]>, tensor<2xi64>) -> tensor<?x?xf64, [@b, @s]>
// CHECK-NEXT: %[[SUBTRACT2:\w+]] = stablehlo.subtract %[[MULTIPLY2]], %[[BROADCAST6]] : tensor<?x?xf64, [@b, @s]>
// CHECK-NEXT: %[[MULTIPLY3:\w+]] = stablehlo.multiply %[[BROADCAST5]], %[[SUBTRACT]] : tensor<?x?xf64, [@b, @s]>
// CHECK-NEXT: %[[SUBTRACT3:\w+]] = stablehlo.subtract %[[SUBTRACT2]], %[[MULTIPLY3]] : tensor<?x?xf64, [@b, @s]>
// CHECK-NEXT: %[[DIVIDE3:\w+]] = stablehlo.divide %[[B]], %[[SQRT]] : tensor<?xf64, [@s]>
// CHECK-NEXT: %[[BROADCAST7:\w+]] = stablehlo.dynamic_broadcast_in_dim %[[DIVIDE3]], %[[SHAPE]], dims = [1]
// CHECK-SAME: : (tensor<?xf64, [@s]>, tensor<2xi64>) -> tensor<?x?xf64, [@b, @s]>
// CHECK-NEXT: %[[DIVIDE4:\w+]] = stablehlo.divide %[[BROADCAST7]], %[[BROADCAST4]] : tensor<?x?xf64, [@b, @s]>
// CHECK-NEXT: %[[MULTIPLY4:\w+]] = stablehlo.multiply %[[DIVIDE4]], %[[SUBTRACT3]] : tensor<?x?xf64, [@b, @s]>
// CHECK-NEXT: %[[MULTIPLY5:\w+]] = stablehlo.multiply %[[E]], %[[DIVIDE]] : tensor<?x?xf64, [@b, @s]>
// CHECK-NEXT: %[[REDUCE3:\w+]] = stablehlo.reduce(%[[MULTIPLY5]] init: %[[CONSTANT]]) applies stablehlo.add
// CHECK-SAME: across dimensions = [0] : (tensor<?x?xf64, [@b, @s]>, tensor<f64>) -> tensor<?xf64, [@s]>
// CHECK-NEXT: return %[[MULTIPLY4]], %[[REDUCE3]], %[[REDUCE]]
// CHECK-SAME: : tensor<?x?xf64, [@b, @s]>, tensor<?xf64, [@s]>, tensor<?xf64, [@s]>
func.func @main(%x: tensor<?x?xf64, [@b, @s]>, %scale: tensor<?xf64, [@s]>, %mean: tensor<?xf64, [@s]>,
    %variance: tensor<?xf64, [@s]>, %above: tensor<?x?xf64, [@b, @s]>)
    -> (tensor<?x?xf64>, tensor<?xf64>, tensor<?xf64>) {
  %0:3 = "stablehlo.batch_norm_grad"(%x, %scale, %mean, %variance, %above)
      <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}>
      : (tensor<?x?xf64, [@b, @s]>, tensor<?xf64, [@s]>, tensor<?xf64, [@s]>, tensor<?xf64, [@s]>,
      tensor<?x?xf64, [@b, @s]>) -> (tensor<?x?xf64>, tensor<?xf64>, tensor<?xf64>)
  return %0#0, %0#1, %0#2 : tensor<?x?xf64>, tensor<?xf64>, tensor<?xf64>
}

// -----

// Integers are not normalised.
// CHECK-LABEL: error: the program cannot be parsed: line
// CHECK-SAME: 'stablehlo.batch_norm_training' op operand #0 must be ranked tensor of 4/6/8/16/32/64-bit float or per-tensor integer quantized values, but got 'tensor<?x?xi32, [@b, @s]>'
func.func @main(%x: tensor<?x?xi32, [@b, @s]>, %scale: tensor<?xi32, [@b]>, %offset: tensor<?xi32, [@b]>)
    -> (tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>) {
  %0:3 = "stablehlo.batch_norm_training"(%x, %scale, %offset)
      <{epsilon = 1.0e-3 : f32, feature_index = 0 : i64}>
      : (tensor<?x?xi32, [@b, @s]>, tensor<?xi32, [@b]>, tensor<?xi32, [@b]>)
      -> (tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>)
  return %0#0, %0#1, %0#2 : tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32>
}
